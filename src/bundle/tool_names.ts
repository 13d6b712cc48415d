/** Names that other programs have for tools, and ours. */

/** Name elsewhere, in lower case → names here. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  // Amplifier
  read_file: ["read"],
  write_file: ["write"],
  edit_file: ["edit", "apply_patch"],
  delegate: ["task", "delegate"],
  load_skill: ["skill"],
  // agents in Markdown of other programs
  multiedit: ["edit", "apply_patch"],
  ls: ["list"],
  search: ["grep"],
  shell: ["bash", "job"],
  terminal: ["bash", "job"],
  bash: ["bash", "job"],
  bashoutput: ["job"],
  killshell: ["job"],
  webfetch: ["web_fetch"],
  websearch: ["web_search"],
  fetch: ["web_fetch"],
  todowrite: ["todo"],
  todoread: ["todo"],
  agent: ["task", "delegate"],
  // more than the same here
  edit: ["edit", "apply_patch"],
  task: ["task", "delegate"],
};

/**
 * Returns the names of a tool here; those of an MCP server's tools are `SERVER__TOOL`. Empty for a tool that
 * does not exist here. Words in brackets, as in `Bash(git *)`, are left out.
 */
export function toolNames(written: string): readonly string[] {
  const name = written.trim().replace(/\(.*\)$/s, "");
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
  if (server !== undefined && tool !== undefined) return [`${server}__${tool}`];
  const key = name.toLowerCase();
  if (Object.hasOwn(NAMES, key)) return NAMES[key]!; // its own key
  return moduleOfTool(key) === undefined ? [] : [key];
}

/** Tool → the module that mounts it. */
const MODULES: Readonly<Record<string, string>> = {
  read: "tool-filesystem",
  list: "tool-filesystem",
  glob: "tool-filesystem",
  write: "tool-filesystem",
  edit: "tool-filesystem",
  apply_patch: "tool-filesystem",
  grep: "tool-search",
  bash: "tool-bash",
  job: "tool-bash",
  web_fetch: "tool-web",
  web_search: "tool-web",
  todo: "tool-todo",
  task: "tool-task",
  delegate: "tool-task",
  skill: "tool-skills",
};

/** Returns the built-in module that mounts a tool; undefined for a tool of another module. */
export function moduleOfTool(tool: string): string | undefined {
  return Object.hasOwn(MODULES, tool) ? MODULES[tool] : undefined;
}
