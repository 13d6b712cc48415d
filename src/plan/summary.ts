/** Says in one sentence what a plan may touch, where its prompts go, and what it asks about. Pure. */
import type { Permissions } from "../sdk/contracts.ts";
import { isObject } from "../sdk/json.ts";
import { type MountPlan, PERMISSION_KINDS, type PermissionKind } from "../sdk/plan.ts";

/** What a plan may touch, of all its modules together. */
export interface PlanSummary {
  /** The sentence. */
  text: string;
  /** Where prompts go, sorted: hosts, and `module ID` for a provider from a URL. */
  prompts_to: string[];
  /** Effective permissions: {@link EVERYTHING} if a module runs inside the program. */
  may: Permissions;
  /** Ids of the modules from URLs and files that run inside the program, where nothing is enforced. */
  inside: string[];
  /**
   * Kinds of calls that `hooks-approval` asks about, such as `bash git push **`, `writes` and `commands`;
   * null: the plan does not have it.
   */
  asks: string[] | null;
}

/** What a module that runs inside the program may do: what the program may, which is at most this. */
export const EVERYTHING: Permissions = Object.fromEntries(PERMISSION_KINDS.map((kind) => [kind, true]));

/** Kinds of permission with the verb of one entry and of all. */
const VERBS: readonly (readonly [PermissionKind, one: string, all: string])[] = [
  ["run", "run", "run any program"],
  ["net", "reach", "reach every host"],
  ["env", "read the variables", "read every variable"],
  ["sys", "read facts about this machine:", "read all facts about this machine"],
  ["ffi", "load the native libraries", "load native libraries"],
  ["import", "import code from", "import code from anywhere"],
];

/** Returns the sentence of a summary. */
export function summaryText({ prompts_to, may, inside, asks }: Omit<PlanSummary, "text">): string {
  const others = VERBS.flatMap(([kind, one, all]) => {
    const entries = may[kind];
    if (entries === true) return [all];
    return Array.isArray(entries) && entries.length > 0 ? [`${one} ${listed(entries)}`] : [];
  });
  const parts = [...filesText(may), ...others];
  return [
    ...inside.length === 0
      ? []
      : [`Runs ${listed(inside)} inside this program, with all that the program may`],
    `${inside.length === 0 ? "May" : "may"} ${
      parts.length === 0 ? "touch nothing outside" : parts.join(", ")
    }`,
    prompts_to.length === 0 ? "sends prompts nowhere" : `sends prompts to ${listed(prompts_to)}`,
    asksText(asks),
  ].join("; ");
}

/** Returns permissions whose paths in a folder are relative to it. `folder` ends in a slash. */
export function permissionsNear(may: Permissions, folder: string): Permissions {
  const near = (path: string) =>
    `${path}/` === folder ? "." : path.startsWith(folder) ? `./${path.slice(folder.length)}` : path;
  return {
    ...may,
    ...Array.isArray(may.read) && { read: may.read.map(near) },
    ...Array.isArray(may.write) && { write: may.write.map(near) },
  };
}

function asksText(asks: PlanSummary["asks"]): string {
  if (asks === null || asks.length === 0) return asks === null ? "never asks" : "denies instead of asking";
  return `asks before ${listed(asks)} (${
    asks.length === 1 ? "1 kind of call" : `${asks.length} kinds of calls`
  })`;
}

function filesText({ read, write }: Permissions): string[] {
  const all = (value: boolean | string[] | undefined) => value === true ? ["every file"] : value || [];
  const [readable, writable] = [all(read), all(write)];
  const both = readable.filter((path) => writable.includes(path));
  const text = (verb: string, paths: readonly string[]) => {
    const own = paths.filter((path) => !both.includes(path));
    return own.length === 0 ? [] : [`${verb} ${inFolders(own)}`];
  };
  return [
    ...both.length === 0 ? [] : [`read and write ${inFolders(both)}`],
    ...text("read", readable),
    ...text("write", writable),
  ];
}

function inFolders(paths: readonly string[]): string {
  return paths[0] === "every file" ? "every file" : `in ${listed(paths)}`;
}

/** Returns `a, b and c`. */
function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** Calls without a rule that a preset of `hooks-approval` asks about; `read-only` denies them. */
const ASKED_BY: Readonly<Record<string, readonly string[]>> = {
  "ask-all": ["every other call"],
  "ask-writes": ["writes", "commands", "risky calls"],
};

/** Returns the kinds of calls that a plan asks about (`PlanSummary.asks`). */
export function askedCalls({ hooks }: Pick<MountPlan, "hooks">): string[] | null {
  const gates = hooks.filter(({ module }) => module === "hooks-approval");
  if (gates.length === 0) return null;
  const rules = gates.flatMap(({ config }) =>
    Array.isArray(config.rules) ? config.rules.filter(isObject) : []
  );
  const asked = rules.flatMap(({ action, tool, argv, input }) => {
    if (action !== "ask" || typeof tool !== "string") return [];
    const fields = isObject(input) ? Object.entries(input).map(([field, glob]) => `${field}=${glob}`) : [];
    return [[tool, ...Array.isArray(argv) ? argv : [], ...fields].join(" ")];
  });
  const others = gates.flatMap(({ config: { preset = "ask-writes" } }) => ASKED_BY[String(preset)] ?? []);
  return [...new Set([...asked, ...others])];
}
