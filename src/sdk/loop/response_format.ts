/**
 * Structured output: checks the form of an answer, even if the provider promises it, and asks the model for
 * corrections.
 */
import { errorMessage } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Message, ResponseFormat } from "../messages.ts";
import type { Provider } from "../providers.ts";
import { checkedPart } from "./checked_part.ts";
import { capabilitiesOf } from "./provider_errors.ts";
import { schemaProblems } from "./tool_input_validation.ts";

/** Maximum correction requests per turn; a model that fails twice seldom succeeds the third time. */
export const MAX_REPAIRS = 2;

/**
 * Returns the format of a config, or undefined for text. OpenAI's key `json_schema` is accepted as `schema`.
 *
 * @throws {TypeError} when the value is not a response format.
 */
export function parseResponseFormat(value: unknown): ResponseFormat | undefined {
  if (value === undefined || value === null) return undefined;
  if (isObject(value)) {
    const { type, strict } = value;
    if (type === "text") return undefined;
    if (type === "json") return { type };
    const schema = schemaOf(value);
    if (type === "json_schema" && isObject(schema)) {
      return { type, schema, ...(typeof strict === "boolean" ? { strict } : {}) };
    }
  }
  throw new TypeError('must be {type: "text"}, {type: "json"} or {type: "json_schema", schema: {…}}');
}

/** Returns the schema next to the type, or nested as in OpenAI's `json_schema: {name, schema}`. */
function schemaOf({ schema, json_schema }: JsonObject): unknown {
  if (schema !== undefined) return schema;
  return isObject(json_schema) && isObject(json_schema.schema) ? json_schema.schema : json_schema;
}

/**
 * Resolves to an answer without what models and servers wrap JSON in, and to what is wrong with it: an empty
 * list when it has the form. Accepted is also JSON in a code fence, after thinking in tags, or after a byte
 * order mark. Does not check keywords that may take unlimited time: see {@link checkedPart}.
 */
export async function formattedAnswer(
  format: ResponseFormat,
  text: string,
): Promise<{ answer: string; problems: readonly string[] }> {
  if (format.type === "text") return { answer: text, problems: [] };
  let problems: readonly string[] | undefined;
  for (const answer of new Set(unwrapped(text))) {
    const json = readJson(answer);
    if ("problem" in json) continue;
    const found = format.type === "json"
      ? []
      : await schemaProblems(checkedPart(format.schema), json.value, "answer");
    if (found.length === 0) return { answer, problems: found };
    problems ??= found;
  }
  const json = readJson(text);
  return { answer: text, problems: problems ?? ("problem" in json ? [json.problem] : []) };
}

function readJson(text: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: `the answer is not JSON: ${errorMessage(error)}` };
  }
}

/** Returns the texts that may be the JSON of an answer: itself, and its content in each known wrapping. */
function unwrapped(text: string): string[] {
  const plain = text.trim(); // also without a byte order mark
  const end = /<\/think(?:ing)?>/.exec(plain);
  const answered = end ? plain.slice(end.index + end[0].length).trim() : plain;
  return [text, ...[plain, answered].flatMap((one) => [one, ...unfenced(one)])];
}

/** Returns the content of the first code fence in a text: up to the last fence, and up to the end. */
function unfenced(text: string): string[] {
  const open = /^[ \t]*(`{3,}|~{3,})[ \t]*(?:[\w+-]+(?=\s))?/m.exec(text);
  if (!open) return [];
  const begin = open.index + open[0].length;
  const end = text.lastIndexOf(open[1]!); // the group is not optional
  return [text.slice(begin, Math.max(begin, end)).trim(), text.slice(begin).trim()];
}

/** Returns the instruction for a model whose provider has no structured output, or null. */
export function formatInstruction(format: ResponseFormat | undefined, provider: Provider): Message | null {
  if (!format || format.type === "text" || capabilitiesOf(provider).includes("structured_output")) {
    return null;
  }
  return reminder(
    "response-format",
    `When you give your final answer, answer with JSON alone: no other text, no code fence.${
      format.type === "json_schema"
        ? ` It must match this JSON Schema:\n${JSON.stringify(format.schema)}`
        : ""
    }`,
    { ephemeral: true },
  );
}

/** Returns the message that asks for a corrected answer. */
export function repairRequest(format: ResponseFormat, problems: readonly string[]): Message {
  const form = format.type === "json_schema"
    ? `JSON that matches this JSON Schema:\n${JSON.stringify(format.schema)}`
    : "JSON";
  const problem = `Your answer cannot be used: ${problems.join("; ")}`;
  return reminder("response-format", `${problem}.\nAnswer again, with nothing but ${form}`);
}

/** Returns a message of the loop to the model. `source`: what the reminder is about. */
export function reminder(source: string, text: string, metadata: JsonObject = {}): Message {
  return {
    role: "user",
    content: `<system-reminder source="orchestrator-${source}">\n${text}\n</system-reminder>`,
    metadata: { source: "orchestrator", ...metadata },
  };
}
