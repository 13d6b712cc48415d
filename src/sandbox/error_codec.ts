/** Converts thrown values to data and back, on both sides of the sandbox protocol. */
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { retryAfterOf } from "../sdk/llm_errors.ts";
import { isObject, type JsonObject, toPlain } from "../sdk/json.ts";
import { cut, Object, Reflect, Set, toText } from "../sdk/primordials.ts";
import type { IsAsked, SerializedError } from "./protocol.ts";

/** Most characters of a message or a stack. */
const MAX_TEXT = 16_384;
const MAX_NAME = 200;
const MAX_CAUSES = 3;
const STANDARD: ReadonlySet<string> = new Set(["name", "message", "stack", "cause"]);

/** Names of Deno's permission errors, from version 2.0 and before. */
const PERMISSION_ERRORS: ReadonlySet<string> = new Set(["NotCapable", "PermissionDenied"]);

/**
 * Deno's message: `Requires net access to "api.example.com:443", run again with the --allow-net flag`. In a
 * compiled program it advises `deno compile --allow-net`.
 */
const DENO_PERMISSION_TEXT =
  /(Requires ([a-z]+) access(?: to (?:("[^"]*")|[^,]*))?), (?:run again with the|specify the required permissions during compilation using `deno compile) --allow-\2(?: flag|`)/;

/**
 * Codes of decisions of the host. They are removed from errors that a guest creates: `limit_reached` would
 * end the run, `denied` and `cancelled` would change its status. An error of the host that a guest rethrows
 * is recognised by its number (`host`).
 */
const HOST_CODES: ReadonlySet<string> = new Set(["limit_reached", "denied", "cancelled", "interrupted"]);

/** Returns a thrown value as data. `numberOf` returns the number of an error of the host. Never throws. */
export function encodeError(
  error: unknown,
  numberOf?: (error: object) => number | undefined,
  depth = 0,
): SerializedError {
  if (typeof error !== "object" || error === null) return bounded({ message: errorMessage(error) });
  const fields = plainFields(error);
  const cause = depth < MAX_CAUSES ? read(error, "cause") : undefined;
  return bounded({
    name: read(error, "name"),
    message: errorMessage(error),
    stack: read(error, "stack"),
    fields: Object.keys(fields).length > 0 ? fields : undefined,
    cause: isObject(cause) ? encodeError(cause, numberOf, depth + 1) : undefined,
    host: numberOf?.(error),
  });
}

/** Returns a serialized error without fields of a wrong type, and with texts that are cut. */
function bounded({ name, message, stack, fields, cause, host }: JsonObject): SerializedError {
  return {
    name: typeof name === "string" ? cut(name, 0, MAX_NAME) : "Error",
    message: typeof message === "string" ? cut(message, 0, MAX_TEXT) : "an error that cannot be read",
    ...(typeof stack === "string" ? { stack: cut(stack, 0, MAX_TEXT) } : {}),
    ...(isObject(fields) ? { fields } : {}),
    ...(isObject(cause) ? { cause: cause as unknown as SerializedError } : {}), // serialized by the caller
    ...(typeof host === "number" ? { host } : {}),
  };
}

function read(error: object, key: string): unknown {
  try {
    return Reflect.get(error, key);
  } catch {
    return undefined; // the getter throws
  }
}

/** Returns the own fields that are data, and `retry_after`, which may be in a `Headers` object. */
function plainFields(error: object): JsonObject {
  const fields: JsonObject = {};
  try {
    for (const key in error) {
      if (STANDARD.has(key) || !Object.hasOwn(error, key)) continue;
      const value = Reflect.get(error, key);
      if (typeof value === "function") continue;
      const plain = toPlain(value);
      if (toText(plain).length <= MAX_TEXT) fields[key] = plain;
    }
  } catch {
    // fields that cannot be read are left out
  }
  try {
    const retry_after = retryAfterOf(error);
    if (retry_after !== null) fields.retry_after = retry_after;
  } catch {
    // its getters may be the module's own
  }
  return fields;
}

/**
 * Returns an error for what a guest threw.
 * @param errorOf Returns an error of the host by its number.
 * @param module Name of the module in messages.
 * @param isAsked Returns whether the plan names an entry, which must not be advised then.
 */
export function decodeGuestError(
  value: unknown,
  errorOf?: (number: number) => unknown,
  module: string = "the module",
  isAsked: IsAsked = () => false,
): unknown {
  const thrown = readThrown(value);
  const own = thrown.host === undefined ? undefined : errorOf?.(thrown.host);
  if (own !== undefined) return own;
  const error = toError(PERMISSION_ERRORS.has(thrown.name) ? withAdvice(thrown, module, isAsked) : thrown);
  const { code } = error as { code?: unknown };
  if (typeof code === "string" && HOST_CODES.has(code)) Reflect.deleteProperty(error, "code");
  if (PERMISSION_ERRORS.has(thrown.name) && code === undefined) {
    Object.assign(error, { code: "tool_permission_denied" });
  }
  return error;
}

/** Returns the permission error with the plan's line that would grant it in place of Deno's flag. */
function withAdvice(
  thrown: SerializedError,
  module: string,
  isAsked: IsAsked,
): SerializedError {
  const found = DENO_PERMISSION_TEXT.exec(thrown.message);
  if (!found) return thrown;
  const [text, wanted = "", kind = "", entry] = found;
  const value = kind === "ffi" || entry === undefined ? "true" : `[${entry}]`;
  const asked = isAsked(kind, entry?.slice(1, -1));
  const advice = asked
    ? `${wanted}: the plan grants it to ${module}, but the policy, this process or a link withholds it: see preamp plan explain`
    : `${wanted}: the plan does not grant it to ${module}, whose entry needs permissions: {${kind}: ${value}}`;
  const advised = (original: string) => original.replace(text, () => advice);
  const { message, stack } = thrown;
  return { ...thrown, message: advised(message), ...(stack === undefined ? {} : { stack: advised(stack) }) };
}

/** Returns an error for what the host threw, for use in the guest. */
export function decodeHostError(thrown: SerializedError): Error {
  const { fields = {}, name, message } = thrown;
  if (name !== "PreampError") return toError(thrown);
  const { code, details, facts } = fields;
  return new PreampError(code as PreampError["code"], message, {
    details: details as PreampError["details"],
    facts: facts as JsonObject,
  });
}

function toError({ name, message, stack, fields, cause }: SerializedError): Error {
  const error = new Error(message, cause ? { cause: toError(cause) } : undefined);
  const define = (key: string, value: unknown, enumerable: boolean) =>
    Object.defineProperty(error, key, { value, enumerable, configurable: true, writable: true });
  for (const [key, value] of Object.entries(fields ?? {})) if (!STANDARD.has(key)) define(key, value, true);
  define("name", name, false);
  if (stack !== undefined) define("stack", stack, false);
  return error;
}

/** Reads the serialized error of a guest, which may be any value. */
function readThrown(value: unknown, depth = 0): SerializedError {
  const { fields, cause, ...rest } = isObject(value) ? value : {};
  return bounded({
    ...rest,
    fields: isObject(fields) ? toPlain(fields) : undefined,
    cause: isObject(cause) && depth < MAX_CAUSES ? readThrown(cause, depth + 1) : undefined,
  });
}
