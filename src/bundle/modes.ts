/** Reads the modes of bundles: a name, an instruction, and what becomes of calls while the mode is on. */
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import type { BundleLoader, ParsedFile } from "./load.ts";
import { type Place, show } from "./places.ts";
import { forModel } from "./prompts.ts";
import type { Report } from "./report.ts";
import { toolNames } from "./tool_names.ts";

/** A mode as a plan has it, by its name. */
interface NamedMode {
  readonly name: string;
  readonly mode: JsonObject;
}

/** Lists in a mode's `tools` → the action here. A warning becomes a question. */
const LISTS = { safe: "allow", warn: "ask", confirm: "ask", block: "deny" } as const;

/**
 * Returns a mode; null, with a warning, if it has no name. A list that is not known denies its tools. Tools
 * that are in no list are denied unless the mode allows them.
 */
export function readMode({ data, body }: ParsedFile, place: Place, report: Report): NamedMode | null {
  const mode = isObject(data.mode) ? data.mode : {};
  const { name, description, tools, default_action } = mode;
  if (typeof name !== "string" || !/[a-z0-9]/i.test(name)) {
    report.warn(`The mode ${show(place)} is left out: it has no name`);
    return null;
  }
  const lists: Record<"deny" | "ask" | "allow", Set<string>> = {
    deny: new Set(),
    ask: new Set(),
    allow: new Set(),
  };
  for (const [kind, list] of Object.entries(isObject(tools) ? tools : {})) {
    const is_known = Object.hasOwn(LISTS, kind);
    const into = is_known ? LISTS[kind as keyof typeof LISTS] : "deny"; // an own key
    if (!is_known) {
      report.warn(`tools.${kind} of the mode ${describe(name)} is not known: its tools are denied`);
    }
    for (const tool of Array.isArray(list) ? list : []) {
      const ours = toolNames(String(tool));
      // a tool of another module has its own name
      for (const one of ours.length > 0 ? ours : [String(tool)]) lists[into].add(one);
    }
  }
  return {
    name: name.trim().replaceAll(/[^a-z0-9]+/gi, "-").replaceAll(/^-|-$/g, ""),
    mode: {
      ...(typeof description === "string" ? { description: forModel(description.trim()) } : {}),
      ...(body === "" ? {} : { instruction: forModel(body) }),
      rules: Object.entries(lists).flatMap(([action, names]) => [...names].map((tool) => ({ tool, action }))),
      default: default_action === "allow" ? "allow" : "deny",
    },
  };
}

/** Resolves to the modes in the folders `modes/` of bundles. Of two with one name, the first counts. */
export async function findModes(loader: BundleLoader): Promise<Record<string, JsonObject>> {
  const modes: Record<string, JsonObject> = {};
  for (const place of await loader.filesIn("modes", /\.md$/i)) {
    const file = await loader.parse(place);
    const mode = file?.kind === "mode" ? readMode(file, place, loader.report) : null;
    if (mode && !Object.hasOwn(modes, mode.name)) modes[mode.name] = mode.mode;
  }
  return modes;
}
