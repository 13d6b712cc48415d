/**
 * Reads the messages of a server item by item. What is odd is repaired, or left out and named: one odd item
 * never spoils the items beside it. Everything that is passed on has a form that the protocol's schemas
 * accept, and a size that is cheap to check.
 *
 * Not for this file: connections, and what a model reads of a result.
 */
import { isObject, type JsonObject } from "preamp/base";

/** Id of a request. */
export type RequestId = string | number;

/** A JSON-RPC message in the form of the protocol. */
export type Message = JsonObject & { readonly jsonrpc: "2.0" };

/** Field of a result's `_meta`: sentences about what was repaired or left out. */
export const NOTES = "preamp/notes";

/** Most items of a list, characters of one definition, and of all definitions of one list. */
export const MAX_ITEMS = 500;
const MAX_DEFINITION_CHARS = 64 * 1024;
const MAX_LIST_CHARS = 2 * 1024 * 1024;
/** Most levels of a definition: schemas are read by recursive functions. */
const MAX_LEVELS = 64;
/** Most blocks of a result that stay blocks; the texts of further ones are joined. */
const MAX_BLOCKS = 200;
/** Most objects and lists of a message: each takes some hundred bytes when it is read. */
const MAX_CONTAINERS = 1_000_000;
/** Most characters of structured content that stays data, of a question, and of an error's data. */
const MAX_DATA_CHARS = 256 * 1024;
const MAX_ERROR_DATA_CHARS = 4_096;
/** Most characters of a name or title in a list, and of a description that is only shown there. */
const MAX_LINE_CHARS = 2_048;

/**
 * Returns the messages in a text; none for a text that has none, such as a log line.
 *
 * @param open Methods of the requests that wait for an answer.
 * @param alone The request that this text answers, where the transport says so. An answer without a usable id
 * is that request's, or that of the only one that waits.
 * @throws {Error} for a text with too many objects and lists.
 */
export function readMessages(
  text: string,
  open: ReadonlyMap<RequestId, string>,
  alone?: RequestId,
): Message[] {
  if (text.length > MAX_CONTAINERS && containersIn(text) > MAX_CONTAINERS) {
    throw new Error(`A message has more than ${MAX_CONTAINERS} objects and lists`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  const only = alone ?? (open.size === 1 ? open.keys().next().value : undefined);
  return (Array.isArray(value) ? value : [value]).flatMap((item) => messageOf(item, open, only) ?? []);
}

function messageOf(
  raw: unknown,
  open: ReadonlyMap<RequestId, string>,
  only: RequestId | undefined,
): Message | null {
  if (!isObject(raw)) return null;
  const { id, method, params, result, error } = raw;
  if (typeof method === "string") {
    if (!isSmall(params)) return null;
    return {
      jsonrpc: "2.0",
      ...(isId(id) ? { id } : {}),
      method,
      ...(isObject(params) ? { params: withoutNulls(params) } : {}),
    };
  }
  const is_failure = isFailure(error);
  if (!is_failure && !("result" in raw)) return null;
  const answered = isId(id) ? asSent(id, open) : only;
  const asked = answered === undefined ? undefined : open.get(answered);
  if (answered === undefined || asked === undefined) return null; // no request waits for it
  return is_failure
    ? { jsonrpc: "2.0", id: answered, error: readError(error) }
    : { jsonrpc: "2.0", id: answered, result: readResult(asked, result) };
}

/** Returns how many objects and lists begin in a text of JSON, outside of its strings. */
function containersIn(text: string): number {
  let count = 0;
  let is_string = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 34) is_string = !is_string; // "
    else if (is_string && char === 92) at++; // a backslash and what it escapes
    else if (!is_string && (char === 123 || char === 91)) count++; // { and [
  }
  return count;
}

function isId(value: unknown): value is RequestId {
  return typeof value === "string" || Number.isSafeInteger(value);
}

/** Returns an id as it was sent: some servers answer `1` with `"1"`. */
function asSent(id: RequestId, open: ReadonlyMap<RequestId, string>): RequestId {
  if (open.has(id) || typeof id === "number") return id;
  return open.has(Number(id)) ? Number(id) : id;
}

/** Returns whether the field `error` of an answer says that the request failed: `null` and `{}` do not. */
function isFailure(error: unknown): boolean {
  return typeof error === "string" ? error !== "" : isObject(error) && Object.keys(error).length > 0;
}

/** Returns an error with a number as its code, and a message. */
function readError(error: unknown): JsonObject {
  if (!isObject(error)) return { code: -32000, message: String(error) };
  const { code, message, data } = error;
  const known = Number.isSafeInteger(code) ? code as number : undefined;
  const words = typeof message === "string" && message !== ""
    ? message
    : message === undefined || message === null
    ? "the server gives no reason"
    : textOf(message);
  const named = known === undefined && typeof code === "string" && code !== "" ? `${code}: ${words}` : words;
  const small = data !== undefined && data !== null && sizeOf(data) <= MAX_ERROR_DATA_CHARS;
  return { code: known ?? -32000, message: named.slice(0, MAX_LINE_CHARS), ...(small ? { data } : {}) };
}

type ReadResult = (result: JsonObject, notes: string[]) => JsonObject;

/** Method → reader of its results. */
const RESULTS: Readonly<Record<string, ReadResult>> = {
  "initialize": initialized,
  "server/discover": discovered,
  "tools/list": (result, notes) => listed("tools", "tool", result, notes, toolOf),
  "resources/list": (result, notes) =>
    listed("resources", "resource", result, notes, (item) => entryOf(item, "uri")),
  "resources/templates/list": (result, notes) =>
    listed(
      "resourceTemplates",
      "template",
      result,
      notes,
      (item) => entryOf(item, "uriTemplate"),
    ),
  "prompts/list": (result, notes) => listed("prompts", "prompt", result, notes, promptOf),
  "tools/call": called,
  "resources/read": contentsOf,
  "prompts/get": messagesOf,
};

function readResult(method: string, raw: unknown): JsonObject {
  const result = isObject(raw) ? raw : method === "tools/call" ? { content: raw } : {};
  const type = typeof result.resultType === "string" ? result.resultType : "complete";
  if (type === "input_required" && isSmall(result)) return withoutNulls(result);
  const notes: string[] = [];
  const read = Object.hasOwn(RESULTS, method) ? RESULTS[method]!(result, notes) : {};
  return { ...read, resultType: type, ...(notes.length === 0 ? {} : { _meta: { [NOTES]: notes } }) };
}

function initialized({ protocolVersion, capabilities, serverInfo, instructions }: JsonObject): JsonObject {
  const { name, version } = isObject(serverInfo) ? serverInfo : {};
  return {
    protocolVersion,
    capabilities: capabilitiesOf(capabilities),
    serverInfo: { name: lineOf(name) ?? "", version: lineOf(version) ?? "" },
    ...(typeof instructions === "string" ? { instructions } : {}),
  };
}

/** Reads what a server says of itself; `supportedVersions`, which decides the protocol, stays as it is. */
function discovered({ supportedVersions, capabilities, instructions }: JsonObject): JsonObject {
  return {
    supportedVersions: Array.isArray(supportedVersions) ? supportedVersions.slice(0, 100) : supportedVersions,
    capabilities: capabilitiesOf(capabilities),
    ...FRESH,
    ...(typeof instructions === "string" ? { instructions } : {}),
  };
}

/** Returns the capabilities that this client uses: `true` and `{}` both say that a server has one. */
function capabilitiesOf(raw: unknown): JsonObject {
  const known = isObject(raw) ? raw : {};
  const has = (name: string) => isObject(known[name]) || known[name] === true;
  return Object.fromEntries(["tools", "resources", "prompts"].filter(has).map((name) => [name, {}]));
}

/** Lists are read once; how long they stay fresh does not matter. */
const FRESH = { ttlMs: 0, cacheScope: "private" };

/** Reads one item of a list. @throws {LeftOut} why it is left out, such as "it has no name". */
type ReadItem = (item: JsonObject, note: (fact: string) => void) => JsonObject;

class LeftOut extends Error {}

function listed(key: string, noun: string, result: JsonObject, notes: string[], read: ReadItem): JsonObject {
  const { [key]: raw, nextCursor } = result;
  const items = Array.isArray(raw) ? raw : [];
  if (items !== raw && raw !== undefined && raw !== null) notes.push(`${key} is not a list`);
  const kept: JsonObject[] = [];
  let chars = 0;
  for (const [index, item] of items.entries()) {
    const label = labelOf(noun, item, index);
    const repaired: string[] = [];
    try {
      if (!isObject(item)) throw new LeftOut(`it is ${item === null ? "null" : typeof item}`);
      const size = sizeOf(item);
      if (isDeep(item)) throw new LeftOut(`its definition has more than ${MAX_LEVELS} levels`);
      if (size > MAX_DEFINITION_CHARS) {
        throw new LeftOut(`its definition has ${size} characters; at most ${MAX_DEFINITION_CHARS} are read`);
      }
      const entry = read(item, (fact) => repaired.push(fact));
      chars += size;
      if (kept.length >= MAX_ITEMS || chars > MAX_LIST_CHARS) {
        notes.push(`the list is too long: its last ${items.length - index} of ${items.length} are left out`);
        break;
      }
      kept.push(entry);
      if (repaired.length > 0) notes.push(`${label} was repaired: ${repaired.join(", ")}`);
    } catch (error) {
      if (!(error instanceof LeftOut)) throw error;
      notes.push(`${label} is left out: ${error.message}`);
    }
  }
  const cursor = typeof nextCursor === "string" && nextCursor !== "" ? { nextCursor } : {};
  return { [key]: kept, ...cursor, ...FRESH };
}

function labelOf(noun: string, item: unknown, index: number): string {
  const { name, uri, uriTemplate } = isObject(item) ? item : {};
  const found = [name, uri, uriTemplate].find((text) => typeof text === "string" && text !== "");
  return found === undefined
    ? `${noun} ${index + 1}`
    : `${noun} ${JSON.stringify(String(found).slice(0, 80))}`;
}

const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

function toolOf(item: JsonObject, note: (fact: string) => void): JsonObject {
  const { name, inputSchema, outputSchema, annotations } = item;
  if (typeof name !== "string" || name === "") throw new LeftOut("it has no name");
  const { title, ...hints } = isObject(annotations) ? annotations : {};
  const known = HINTS.filter((hint) => typeof hints[hint] === "boolean").map((hint) => [hint, hints[hint]]);
  return {
    name,
    ...textFields(item, ["title", "description"]),
    inputSchema: schemaOf(inputSchema, note),
    ...(isObject(outputSchema) && outputSchema.type === "object"
      ? { outputSchema: withLists(outputSchema, () => {}) }
      : {}),
    ...(isObject(annotations)
      ? { annotations: { ...(typeof title === "string" ? { title } : {}), ...Object.fromEntries(known) } }
      : {}),
  };
}

/** Returns the schema of a tool's input. @throws {LeftOut} for a schema of something else than an object. */
function schemaOf(raw: unknown, note: (fact: string) => void): JsonObject {
  if (raw === undefined || raw === null || raw === true) {
    note("it has no inputSchema");
    return { type: "object" };
  }
  if (!isObject(raw)) throw new LeftOut("its inputSchema is not an object");
  const { type } = raw;
  if (type !== "object") {
    const may_be = type === undefined || type === null || Array.isArray(type) && type.includes("object");
    if (!may_be) throw new LeftOut(`its inputSchema is of type ${textOf(type).slice(0, 80)}, not object`);
    note("its inputSchema has no type: object");
  }
  return withLists({ ...raw, type: "object" }, note);
}

/** Returns a schema whose `properties` and `required`, if it has them, are what JSON Schema says. */
function withLists(schema: JsonObject, note: (fact: string) => void): JsonObject {
  const { properties, required, $schema, ...rest } = schema;
  if (properties !== undefined && !isObject(properties)) note("its inputSchema has no readable properties");
  const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
  if (required !== undefined && names.length !== (Array.isArray(required) ? required.length : -1)) {
    note("its inputSchema has no readable list of required properties");
  }
  // in the order of the fields: the lock hashes what is the same in each
  return {
    ...(typeof $schema === "string" ? { $schema } : {}),
    ...rest,
    ...(isObject(properties) ? { properties } : {}),
    ...(Array.isArray(required) ? { required: names } : {}),
  };
}

/** Returns what a list needs of a resource or template. */
function entryOf(item: JsonObject, key: string): JsonObject {
  const address = item[key];
  if (typeof address !== "string" || address === "") throw new LeftOut(`it has no ${key}`);
  const name = lineOf(item.name) ?? address.slice(0, MAX_LINE_CHARS);
  return { [key]: address, name, ...textFields(item, ["title", "description", "mimeType"]) };
}

function promptOf(item: JsonObject, note: (fact: string) => void): JsonObject {
  const { name, arguments: fields } = item;
  if (typeof name !== "string" || name === "") throw new LeftOut("it has no name");
  const list = Array.isArray(fields) ? fields : [];
  const named = list.filter((field) => isObject(field) && typeof field.name === "string") as JsonObject[];
  if (named.length < list.length) note("arguments without a name are left out");
  return {
    name,
    ...textFields(item, ["title", "description"]),
    arguments: named.map((field) => ({
      name: field.name,
      ...textFields(field, ["description"]),
      ...(field.required === true ? { required: true } : {}),
    })),
  };
}

function textFields(item: JsonObject, names: readonly string[]): JsonObject {
  const fields = names.filter((name) => typeof item[name] === "string").map((name) => [name, item[name]]);
  return Object.fromEntries(fields);
}

function called({ content, toolResult, structuredContent, isError }: JsonObject): JsonObject {
  const blocks = blocksOf(content ?? toolResult);
  const is_data = isObject(structuredContent) && isSmall(structuredContent);
  if (structuredContent !== undefined && structuredContent !== null && !is_data && blocks.length === 0) {
    blocks.push({ type: "text", text: textOf(structuredContent) });
  }
  return {
    content: blocks,
    ...(is_data ? { structuredContent } : {}),
    ...(isError === true || isError === "true" ? { isError: true } : {}),
  };
}

function contentsOf({ contents }: JsonObject): JsonObject {
  const items = Array.isArray(contents) ? contents : isObject(contents) ? [contents] : [];
  const blocks = bounded(items, (item) => resourceOf(item) ?? blockOf(item));
  const found = blocks.map((block) => "uri" in block ? block : { uri: "", text: String(block.text ?? "") });
  return { contents: found, ...FRESH };
}

function messagesOf({ messages }: JsonObject): JsonObject {
  const items = Array.isArray(messages) ? messages : [messages];
  const found = items.slice(0, MAX_BLOCKS).flatMap((item) => {
    const { role, content } = isObject(item) && "content" in item ? item : { role: "user", content: item };
    const who = role === "assistant" ? "assistant" : "user";
    return blocksOf(content).map((block) => ({ role: who, content: block }));
  });
  const kept = found.slice(0, MAX_BLOCKS);
  if (items.length > MAX_BLOCKS || found.length > MAX_BLOCKS) {
    kept.push({ role: "user", content: { type: "text", text: "(the further messages are left out)" } });
  }
  return { messages: kept };
}

/** Returns the blocks of a content, which may also be a text, one block or another value. */
function blocksOf(content: unknown): JsonObject[] {
  if (content === undefined || content === null) return [];
  return bounded(Array.isArray(content) ? content : [content], blockOf);
}

/** Reads the first items as blocks, joins the texts of further ones, and counts what else there is. */
function bounded(items: readonly unknown[], read: (item: unknown) => JsonObject): JsonObject[] {
  const blocks = items.slice(0, MAX_BLOCKS).map(read);
  if (items.length <= MAX_BLOCKS) return blocks;
  const texts: string[] = [];
  for (const item of items.slice(MAX_BLOCKS)) {
    const { text } = read(item);
    if (typeof text === "string") texts.push(text);
  }
  const others = items.length - MAX_BLOCKS - texts.length;
  if (others > 0) texts.push(`(${others} further blocks are left out)`);
  return [...blocks, { type: "text", text: texts.join("\n") }];
}

function blockOf(raw: unknown): JsonObject {
  if (!isObject(raw)) return { type: "text", text: raw === null ? "" : textOf(raw) };
  const { type, text, data, mimeType, resource, uri } = raw;
  switch (type) {
    case "image":
    case "audio": {
      const base64 = base64Of(data);
      if (base64 === null) return unreadable(type, "without readable data");
      return { type, data: base64, mimeType: typeof mimeType === "string" ? mimeType : UNKNOWN_TYPE };
    }
    case "resource": {
      const found = resourceOf(resource);
      return found === null ? unreadable(type, "without text") : { type, resource: found };
    }
    case "resource_link":
      if (typeof uri !== "string") return unreadable(type, "without uri");
      return { type, ...entryOf(raw, "uri") };
  }
  if (typeof text === "string") return { type: "text", text };
  if (type === "text") return { type, text: text === undefined || text === null ? "" : textOf(text) };
  if (type === undefined) return { type: "text", text: textOf(raw) };
  return unreadable(textOf(type).slice(0, 80), "that is not known");
}

function unreadable(type: string, fact: string): JsonObject {
  return { type: "text", text: `(a block of type ${type} ${fact})` };
}

function resourceOf(raw: unknown): JsonObject | null {
  if (!isObject(raw)) return null;
  const { uri, text, blob } = raw;
  const head = { uri: typeof uri === "string" ? uri : "", ...textFields(raw, ["mimeType"]) };
  if (typeof text === "string") return { ...head, text };
  const base64 = base64Of(blob);
  return base64 === null ? null : { ...head, blob: base64 };
}

/** Media type of data whose type a server does not say; an image is known by its bytes. */
const UNKNOWN_TYPE = "application/octet-stream";

/** Returns data as plain Base64 with padding (RFC 4648 §4); null for what is not Base64. */
function base64Of(data: unknown): string | null {
  if (typeof data !== "string") return null;
  const plain = data.replace(/^\s*data:[^,]{0,200},/, "").replace(/\s+/g, "").replace(/=+$/, "")
    .replaceAll("-", "+").replaceAll("_", "/");
  if (!/^[A-Za-z0-9+/]*$/.test(plain) || plain.length % 4 === 1) return null;
  return plain.padEnd(Math.ceil(plain.length / 4) * 4, "=");
}

/** Returns a short text as it is; undefined for another value, which counts as absent. */
function lineOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value.slice(0, MAX_LINE_CHARS) : undefined;
}

/** Returns an object without the fields that are null: servers write null for what is absent. */
function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));
}

/** Returns any value as a text. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(data with too many levels)";
  }
}

/** Returns the characters of a value's JSON; infinite for one with too many levels. */
function sizeOf(value: unknown): number {
  try {
    return JSON.stringify(value)?.length ?? 0;
  } catch {
    return Infinity;
  }
}

/** Returns whether a value is small enough to stay data. */
function isSmall(value: unknown): boolean {
  return !isDeep(value) && sizeOf(value) <= MAX_DATA_CHARS;
}

/** Returns whether a value has more levels than are read. */
function isDeep(value: unknown, levels = MAX_LEVELS): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeep(item, levels - 1));
}
