/** Reads the modes of bundles: a name, an instruction, and what becomes of calls while the mode is on. */
import { isObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import type { BundleLoader, ParsedFile } from "./load.ts";
import { type Place, show } from "./places.ts";
import type { Report } from "./report.ts";
import { toolNames } from "./tool_names.ts";

/** A mode. Names of tools are ours. */
export interface Mode {
  readonly name: string;
  readonly description: string;
  /** Text for the model while the mode is on. */
  readonly instruction: string;
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
  /** What becomes of tools that are in none of the lists. */
  readonly otherwise: "allow" | "deny";
  /** Names of the modes that may follow; absent: all. */
  readonly transitions?: readonly string[];
}

/** Kinds of lists in a mode's `tools` → the list here. A warning becomes a question. */
const LISTS = { safe: "allow", warn: "ask", confirm: "ask", block: "deny" } as const;

/** Returns a mode; null, with a warning, if it has no name. */
export function readMode({ data, body }: ParsedFile, place: Place, report: Report): Mode | null {
  const mode = isObject(data.mode) ? data.mode : {};
  const { name, description, tools, default_action, allowed_transitions } = mode;
  if (typeof name !== "string" || name === "") {
    report.warn(`The mode ${show(place)} is left out: it has no name`);
    return null;
  }
  const lists: Record<"allow" | "ask" | "deny", string[]> = { allow: [], ask: [], deny: [] };
  for (const [kind, list] of Object.entries(isObject(tools) ? tools : {})) {
    const into = Object.hasOwn(LISTS, kind) ? LISTS[kind as keyof typeof LISTS] : "deny"; // an own key
    if (!Object.hasOwn(LISTS, kind)) {
      report.warn(`tools.${kind} of the mode ${describe(name)} is not known: these tools are denied in it`);
    }
    for (const tool of Array.isArray(list) ? list : []) {
      const ours = toolNames(String(tool));
      // a tool of another module has its own name
      lists[into].push(...ours.length > 0 ? ours : [String(tool)]);
    }
  }
  return {
    name,
    description: typeof description === "string" ? description.trim() : "",
    instruction: body,
    allow: [...new Set(lists.allow)],
    ask: [...new Set(lists.ask)],
    deny: [...new Set(lists.deny)],
    otherwise: default_action === "allow" ? "allow" : "deny",
    ...(Array.isArray(allowed_transitions) ? { transitions: allowed_transitions.map(String) } : {}),
  };
}

/** Resolves to the modes in the folders `modes/` of bundles. Of two with one name, the first counts. */
export async function findModes(loader: BundleLoader): Promise<Mode[]> {
  const modes = new Map<string, Mode>();
  const seen = new Set<string>();
  for (const namespaces of loader.namespaces.values()) {
    for (const { folder } of namespaces) {
      const modes_folder = { root: folder.root, path: folder.path === "" ? "modes" : `${folder.path}/modes` };
      const key = `${folder.root.url} ${modes_folder.path}`;
      if (seen.has(key)) continue;
      seen.add(key);
      for (const name of await loader.files.list(modes_folder) ?? []) {
        if (!/\.md$/i.test(name)) continue;
        const place = { root: folder.root, path: `${modes_folder.path}/${name}` };
        const file = await loader.parse(place);
        const mode = file?.kind === "mode" ? readMode(file, place, loader.report) : null;
        if (mode && !modes.has(mode.name)) modes.set(mode.name, mode);
      }
    }
  }
  return [...modes.values()];
}
