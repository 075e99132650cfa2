/** The chat commands that the daemon offers. */

/**
 * Find the commands that a draft may become.
 * @param {string} draft what stands in the message field
 * @param {Array<{name: string, argument: string, help: string}>} commands of
 *   `GET /api/commands`
 * @returns {Array<{name: string, argument: string, help: string}>} with a slash before
 *   their names; empty unless the draft is the beginning of a command
 */
export function matchingCommands(draft, commands) {
  if (!/^\/\S*$/.test(draft)) return [];
  return commands
    .map((command) => ({ ...command, name: `/${command.name}` }))
    .filter(({ name }) => name.startsWith(draft.toLowerCase()));
}
