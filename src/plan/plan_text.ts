/** Writes a plan's data as text that people edit. */
import { canonicalJson, type JsonObject } from "../sdk/json.ts";
import { parsePlanText } from "./parse/parse.ts";

/**
 * Resolves to a plan as YAML that reads back as the same data; as JSON, which is YAML too, where YAML would
 * not.
 */
export async function planText(plan: JsonObject): Promise<string> {
  const { dump } = await import("js-yaml");
  const text = dump(plan, { lineWidth: -1, noRefs: true });
  const same = await parsePlanText(text).then(
    ({ data }) => canonicalJson(data) === canonicalJson(plan),
    () => false,
  );
  return same ? text : `${JSON.stringify(plan, null, 2)}\n`;
}
