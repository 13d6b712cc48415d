/**
 * Markdown with YAML front matter: YAML between `---` on the first line and the next line `---`, then a text.
 * Knows nothing of the keys.
 */
import { parseDocument } from "../plan/parse/parse.ts";
import { hasCode } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";

/**
 * Resolves to the data of front matter; of an empty one, to no keys.
 *
 * @param options `lenient`: text that is not YAML is read line by line, as other programs write it.
 * @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`.
 */
export async function parseFrontMatter(
  head: string,
  { label, lenient = false }: { label: string; lenient?: boolean },
): Promise<JsonObject> {
  if (head.replaceAll(/^[ \t]*#.*$/gm, "").trim() === "") return {};
  try {
    return (await parseDocument(head, { label, hint: "write keys and values, such as name: helper" })).data;
  } catch (error) {
    const fields = lenient && hasCode(error, "plan_invalid") ? fieldsOf(head) : null;
    if (fields === null) throw error;
    return fields;
  }
}

/** Keys of agents of other programs, whose descriptions often have a `:` that YAML does not take. */
const PLAIN_KEY = /^(name|description|tools|model|color):[ \t]*(.*)$/;

/**
 * Returns the fields of front matter that is not YAML: each key with the rest of its line, and the lines
 * below it. Null if it has other keys, whose meaning could be lost.
 */
function fieldsOf(head: string): JsonObject | null {
  const fields: Record<string, string> = {};
  let key: string | undefined;
  for (const line of head.split(/\r?\n/)) {
    const [, found, value = ""] = PLAIN_KEY.exec(line) ?? [];
    if (found !== undefined) {
      if (Object.hasOwn(fields, found)) return null;
      fields[key = found] = value.replace(/^(["'])(.*)\1$/, "$2");
    } else if (key !== undefined && !/^[A-Za-z_-]+:(?=\s|$)/.test(line)) fields[key] += `\n${line}`;
    else if (line.trim() !== "") return null;
  }
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, text.trim()]));
}
