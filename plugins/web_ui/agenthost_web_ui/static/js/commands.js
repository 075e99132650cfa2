/** The chat commands that the daemon understands. */

export const COMMANDS = [
  { name: "/new", argument: "", what: "Begin anew; this conversation is kept" },
  { name: "/compact", argument: "", what: "Summarise older messages" },
  { name: "/model", argument: "<name>", what: "Switch the model" },
  { name: "/models", argument: "", what: "List the models" },
  { name: "/providers", argument: "", what: "List the providers" },
  { name: "/think", argument: "", what: "Extended thinking on or off" },
  { name: "/usage", argument: "", what: "Show tokens and cost" },
  { name: "/stop", argument: "", what: "Stop the running turn" },
];

/**
 * Find the commands that a draft may become.
 * @param {string} draft what stands in the message field
 * @returns {typeof COMMANDS} empty unless the draft is the beginning of a command
 */
export function matchingCommands(draft) {
  if (!/^\/\S*$/.test(draft)) return [];
  return COMMANDS.filter((command) => command.name.startsWith(draft.toLowerCase()));
}
