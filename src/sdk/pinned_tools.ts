/** Definitions of tools that another program offers, as a lock keeps them, and what has changed in them. */

/** What a lock keeps of a tool. */
export interface PinnedTool {
  /** Lower-case hex SHA-256 of the definition. */
  readonly sha256: string;
  /** Names of the tool's parameters, sorted. */
  readonly parameters: readonly string[];
}

/** The tools of one server, by name. */
export type PinnedTools = Readonly<Record<string, PinnedTool>>;

/** Returns one sentence for each difference between the pinned tools of a server and its tools now. */
export function toolChanges(server: string, before: PinnedTools, after: PinnedTools): string[] {
  const changes: string[] = [];
  for (const [name, tool] of Object.entries(after)) {
    const known = Object.hasOwn(before, name) ? before[name] : undefined;
    const label = `tool \`${name}\` of \`${server}\``;
    if (!known) changes.push(`${label} is new`);
    else if (known.sha256 !== tool.sha256) {
      const gained = tool.parameters.filter((one) => !known.parameters.includes(one));
      const lost = known.parameters.filter((one) => !tool.parameters.includes(one));
      const facts = [...parameterFacts("gained", gained), ...parameterFacts("lost", lost)];
      changes.push(`${label} ${facts.join(" and ") || "changed its definition"}`);
    }
  }
  for (const name of Object.keys(before)) {
    if (!Object.hasOwn(after, name)) changes.push(`tool \`${name}\` of \`${server}\` is gone`);
  }
  return changes;
}

function parameterFacts(verb: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const shown = names.slice(0, 10).map((name) => `\`${name}\``).join(", ");
  return [`${verb} ${names.length === 1 ? "parameter" : "parameters"} ${shown}`];
}
