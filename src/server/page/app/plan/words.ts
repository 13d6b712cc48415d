/** What a plan may touch, in words. */
import type { ExplainedModule, Explanation, Permissions } from "../state/plan_draft.ts";

/** Returns how a plan is called, by its name or its run's id; null for the user's own. */
export function planLabel(name: string | null): string {
  if (name === null) return "your own";
  return name.startsWith("run_") ? `of ${name.slice(0, 10)}…` : name;
}

/** Kinds of permission with the verb of some and the words for all. */
const KINDS: readonly (readonly [kind: string, some: string, all: string])[] = [
  ["read", "read", "read every file"],
  ["write", "write", "write every file"],
  ["net", "reach", "reach every host"],
  ["run", "run", "run any program"],
  ["env", "read the variables", "read every variable"],
  ["sys", "read facts about the machine:", "read all facts about the machine"],
  ["ffi", "load the native libraries", "load native libraries"],
  ["import", "import code from", "import code from anywhere"],
];

function permissionWords(permissions: Permissions): string[] {
  return KINDS.flatMap(([kind, some, all]) => {
    const value = permissions[kind];
    if (value === true) return [all];
    return Array.isArray(value) && value.length > 0 ? [`${some} ${value.join(", ")}`] : [];
  });
}

/** Returns what a module may touch and where it sends data, one thing a line; empty for nothing. */
export function touchedBy({ permissions, prompts_to, servers }: ExplainedModule): string[] {
  return [
    ...permissionWords(permissions.granted),
    ...(prompts_to === null ? [] : [`send prompts to ${prompts_to}`]),
    ...servers.map(({ name, transport, target }) =>
      `use the tools of ${name} (${[transport, target].filter(Boolean).join(" ")})`
    ),
  ];
}

/** Returns what the plan grants a module and the module does not get. */
export function refusedTo({ permissions }: ExplainedModule): string[] {
  return permissionWords(permissions.refused);
}

/** Returns the sentence about the whole plan. */
export function planSentence({ modules, summary }: Explanation): string {
  return `${modules.length} ${modules.length === 1 ? "module" : "modules"}. ${summary.text}.`;
}

/** Units of limits; `on_limit` and what a later version adds is shown by name. */
const UNITS: Readonly<Record<string, readonly [before: string, after: string]>> = {
  max_iterations: ["", " model calls"],
  max_tool_calls: ["", " tool calls"],
  max_total_tokens: ["", " tokens"],
  max_cost_usd: ["$", ""],
  max_duration_s: ["", " s"],
};

/** Returns the limits as a text with units. */
export function limitsText(limits: Explanation["limits"]): string {
  return Object.entries(limits).map(([name, value]) => {
    const [before, after] = UNITS[name] ?? [`${name} `, ""];
    return `${before}${typeof value === "number" ? value.toLocaleString("en") : value}${after}`;
  }).join(", ");
}
