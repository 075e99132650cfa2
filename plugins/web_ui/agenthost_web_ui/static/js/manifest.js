/** Write an agent's manifest: TOML with every value escaped, and the rights it needs. */

/** Tools that are useful at once and stay inside the agent's own space. */
export const DEFAULT_TOOLS = [
  "calculate",
  "file_list",
  "file_read",
  "file_write",
  "kv_get",
  "kv_set",
  "system_time",
];

/** What a tool needs besides its name; each line is granted with the first such tool. */
const RIGHTS = [
  { tools: ["web_fetch", "web_search"], line: 'network = ["*"]' },
  { tools: ["kv_get"], line: 'memory_read = ["self.*"]' },
  { tools: ["kv_set"], line: 'memory_write = ["self.*"]' },
  { tools: ["agent_call"], line: 'agent_message = ["*"]' },
  { tools: ["agent_spawn"], line: "agent_spawn = true" },
  { tools: ["shell_exec"], line: 'shell = ["*"]' },
];

/**
 * Write a TOML basic string.
 * @param {string} text any text
 * @returns {string} quoted and escaped; a lone surrogate becomes U+FFFD
 */
export function tomlString(text) {
  const escaped = text
    .replace(/\p{Surrogate}/gu, "\uFFFD")
    .replace(/["\\]/g, "\\$&")
    .replace(/[\u0000-\u001F\u007F]/g, (char) => {
      const code = char.charCodeAt(0).toString(16).toUpperCase();
      return `\\u${code.padStart(4, "0")}`;
    });
  return `"${escaped}"`;
}

/**
 * Write the manifest of a new agent.
 * @param {object} draft
 * @param {string} draft.name
 * @param {string} draft.description
 * @param {string} draft.systemPrompt left out when empty
 * @param {string[]} draft.tools names
 * @param {{provider: string, id: string} | null} draft.model null for the default
 * @returns {string} TOML text
 */
export function writeManifest({ name, description, systemPrompt, tools, model }) {
  const lines = [
    `name = ${tomlString(name)}`,
    'version = "0.1.0"',
    `description = ${tomlString(description)}`,
    'module = "builtin:chat"',
  ];
  const modelLines = [
    ...(model ? [`provider = ${tomlString(model.provider)}`, `model = ${tomlString(model.id)}`] : []),
    ...(systemPrompt ? [`system_prompt = ${tomlString(systemPrompt)}`] : []),
  ];
  if (modelLines.length > 0) lines.push("", "[model]", ...modelLines);
  lines.push("", "[capabilities]", `tools = [${tools.map(tomlString).join(", ")}]`);
  for (const right of RIGHTS) {
    if (right.tools.some((tool) => tools.includes(tool))) lines.push(right.line);
  }
  return `${lines.join("\n")}\n`;
}
