/**
 * Redacts secrets in logs, events, errors, the store and HTTP responses. Known secrets (every expanded
 * `${VAR}` and API key) are redacted by value everywhere. Fields are redacted by name in configs, plans,
 * headers and modules' events, but not in the runtime's own events, which replay and resume. The bytes of
 * images are not searched: what a short secret replaced in their base64 would be no image. Does not change
 * its input.
 */
import { type ErrorCode, errorCode, errorMessage, errorName, PreampError } from "../sdk/errors.ts";
import { eventsWith } from "../sdk/event_table.ts";
import { isClean, markedBytes, setClean } from "../sdk/frozen_data.ts";
import { isPlainImage } from "../sdk/images.ts";
import {
  estimateJsonBytes,
  isObject,
  ITEM_BYTES,
  type JsonObject,
  KEY_BYTES,
  MARKS_BYTES,
  SCALAR_BYTES,
} from "../sdk/json.ts";
import { createPartialSecretFilter, formsOf } from "./secret_texts.ts";
import { vendorKeys } from "./vendor_keys.ts";

/** A reference to a variable, without a default: it names a secret and has none. */
const REFERENCE = /^\$\{[A-Za-z_][A-Za-z0-9_-]*\}$/;

/** Replaces a secret. */
export const REDACTED = "[REDACTED]";

/** Names of secret fields, compared without case, hyphens and underscores. */
const SECRET_KEYS: ReadonlySet<string> = new Set([
  "apikey",
  "xapikey",
  "secret",
  "password",
  "passphrase",
  "token",
  "credential",
  "credentials",
  "privatekey",
  "auth",
  "authorization",
  "proxyauthorization",
]);

/** Suffixes of secret field names, such as `client_secret`. Not `_tokens`, which are counts. */
const SECRET_ENDS = ["_token", "_secret", "_password", "_api_key", "_private_key", "_credentials"];

/** Cache of decisions by field name. Log entries have few different names. */
const judged = new Map<string, boolean>();

/**
 * Returns true if a field of this name holds a secret: `api_key`, `accessToken`, `X-Api-Key`; not
 * `total_tokens`.
 */
export function isSecretKey(key: string): boolean {
  if (key.length > 100) return false;
  let secret = judged.get(key);
  if (secret === undefined) {
    if (judged.size >= 2_000) judged.clear(); // bounded, because callers choose names
    judged.set(key, secret = namesSecret(key));
  }
  return secret;
}

function namesSecret(key: string): boolean {
  const name = snakeCase(key);
  return SECRET_KEYS.has(name.replaceAll("_", "")) || SECRET_ENDS.some((end) => name.endsWith(end));
}

/**
 * Events of the runtime and of loops: the conversation and the course of a run. Replay and resume compare
 * them, so a field named `token` in a tool's input must be redacted in all of them or in none. All other
 * events are the modules' own.
 */
const OWN_FIELDS = eventsWith("own_fields");

/**
 * Maximum number of secrets of ended runs that the process redacts from its log. Each costs time per line.
 */
const MAX_RUN_SECRETS = 1_000;

/**
 * Creates the redactor of a process. It knows these secrets, the keys of vendors that are set, and the
 * secrets of the latest runs, which have a child each.
 *
 * @param env Returns a variable.
 */
export function processRedactor(
  secrets: Iterable<string>,
  env: (name: string) => string | undefined,
): Redactor {
  return new Redactor([...secrets, ...vendorKeys(env)], { max_values: MAX_RUN_SECRETS });
}

/** Number of the last list that was created. */
let last_search = 0;

/**
 * The values that a redactor searches for. Never changed, so that the redactors of runs share those of the
 * process.
 */
class SearchedValues {
  /** Every encoding of every value, longest first: a secret that contains another is replaced as a whole. */
  readonly needles: readonly string[];
  /** Number of the list; marked data remembers which list was not found in it. 0: nothing is searched for. */
  readonly search: number;
  #cut: ((text: string) => number) | undefined;

  /** @param forms Value → its encodings. */
  constructor(readonly forms: ReadonlyMap<string, readonly string[]>) {
    this.needles = [...new Set([...forms.values()].flat())].sort((a, b) => b.length - a.length);
    this.search = this.needles.length === 0 ? 0 : ++last_search;
  }

  partialSecretLength(text: string): number {
    return (this.#cut ??= createPartialSecretFilter(this.needles))(text);
  }
}

const NO_VALUES = new SearchedValues(new Map());

/** Returns the encodings of the values and of further secrets. */
function formsWith({ forms }: SearchedValues, secrets: readonly string[]): Map<string, readonly string[]> {
  const result = new Map(forms);
  for (const secret of secrets) if (!result.has(secret)) result.set(secret, formsOf(secret));
  return result;
}

export interface RedactorOptions {
  /** Redactor that receives every secret too. */
  parent?: Redactor;
  /** Maximum number of registered values; the oldest are removed first. Default: no limit. */
  max_values?: number;
}

/** A registry of secret values, and the functions that redact them. */
export class Redactor {
  readonly #options: RedactorOptions;
  /** Values that are never removed. */
  #permanent: SearchedValues;
  #values: SearchedValues;

  /** Creates a redactor with secrets that are never removed. */
  constructor(secrets: Iterable<string> = [], options: RedactorOptions = {}) {
    const permanent = [...secrets];
    options.parent?.register(...permanent);
    this.#options = options;
    this.#permanent = this.#values = permanent.length === 0
      ? NO_VALUES
      : new SearchedValues(formsWith(NO_VALUES, permanent));
  }

  /** Returns a redactor with the permanent values of this one. This one receives all secrets of the child. */
  child(): Redactor {
    const child = new Redactor([], { parent: this });
    child.#permanent = child.#values = this.#permanent;
    return child;
  }

  /**
   * Registers secrets. Values under six characters are not searched for, and are redacted by field name
   * only.
   */
  register(...secrets: string[]): void {
    const { parent, max_values = Infinity } = this.#options;
    parent?.register(...secrets);
    if (secrets.every((secret) => this.#values.forms.has(secret))) return;
    const permanent = this.#permanent.forms;
    const forms = formsWith(this.#values, secrets);
    for (const oldest of forms.keys()) {
      if (forms.size <= max_values + permanent.size) break;
      if (!permanent.has(oldest)) forms.delete(oldest);
    }
    this.#values = new SearchedValues(forms);
  }

  /**
   * Returns the number of characters at the end of a text that may be the beginning of a secret and must
   * wait for more text.
   */
  partialSecretLength(text: string): number {
    return this.#values.partialSecretLength(text);
  }

  /** Number of registered values. */
  get size(): number {
    return this.#values.forms.size;
  }

  /** Returns text with every encoding of every secret replaced; the same text if it contains none. */
  redactText(text: string): string {
    let result = text;
    for (const needle of this.#values.needles) {
      if (needle.length <= result.length && result.includes(needle)) { // perf: most texts are shorter
        result = result.replaceAll(needle, REDACTED);
      }
    }
    return result;
  }

  /**
   * Returns JSON data with secrets replaced by field name and by value, also in keys. For configs, plans
   * and headers. Data without secrets is returned as the same object.
   */
  redact<T>(value: T): T {
    return this.#value(value, isSecretField) as T; // text remains text, lists lists, objects objects
  }

  /** Redacts like {@link redact}, but by value only: for conversations. */
  redactValues<T>(value: T): T {
    return this.#values.needles.length === 0 ? value : this.#value(value, isNoSecretField) as T; // as above
  }

  /** Returns the data of an event with secrets replaced; for a module's own event by field name too. */
  redactEvent<T>(event: string, data: T): T {
    if (!OWN_FIELDS.has(event)) return this.redact(data);
    return this.redactValues(event === "prompt:complete" ? this.#withWholePreview(data) : data);
  }

  /**
   * Returns the data of `prompt:complete` with a truncated preview that does not end in the middle of a
   * secret.
   */
  #withWholePreview<T>(data: T): T {
    if (this.#values.needles.length === 0 || !isObject(data)) return data;
    const { response_preview: preview, length } = data;
    if (typeof preview !== "string" || [...preview].length >= Number(length)) return data;
    const partial = this.partialSecretLength(preview);
    return partial === 0 ? data : { ...data, response_preview: preview.slice(0, -partial) };
  }

  /** Returns an error without secrets in message, details and stack; the same error if it contains none. */
  redactError(error: unknown): unknown {
    const { details = [], facts = {}, stack = "" } = error instanceof Error
      ? error as Partial<PreampError>
      : {};
    const displayed = { message: errorMessage(error), details, facts, stack };
    const redacted = this.redactValues(displayed);
    if (redacted === displayed) return error;
    const { message, ...rest } = redacted;
    const code = errorCode(error) as ErrorCode | undefined; // one of our codes; otherwise it is displayed as `internal`
    const copy = code === undefined ? new Error(message) : new PreampError(code, message, rest);
    return Object.defineProperties(copy, {
      name: { value: errorName(error), configurable: true },
      stack: { value: rest.stack, configurable: true },
    });
  }

  /**
   * Returns the estimated size of an event's data, or NaN if it contains a secret. perf: one walk for both,
   * because every log entry needs it.
   */
  estimateEventBytes(event: string, data: unknown): number {
    if (event === "prompt:complete" && this.#withWholePreview(data) !== data) return NaN;
    return this.#estimateBytes(data, OWN_FIELDS.has(event) ? isNoSecretField : isSecretField);
  }

  #estimateBytes(value: unknown, isSecret: FieldTest): number {
    if (typeof value === "string") return this.#holds(value) ? NaN : value.length + MARKS_BYTES;
    if (typeof value !== "object" || value === null) return SCALAR_BYTES;
    if (isSecret !== isNoSecretField) return this.#estimatePartBytes(value, isSecret);
    const known = markedBytes(value);
    if (known >= 0 && (this.#values.needles.length === 0 || isClean(value, this.#values.search))) {
      return known;
    }
    const bytes = this.#estimatePartBytes(value, isSecret);
    if (!Number.isNaN(bytes)) setClean(value, this.#values.search);
    return bytes;
  }

  #estimatePartBytes(value: object, isSecret: FieldTest): number {
    if (isPlainImage(value)) return estimateJsonBytes(value);
    let bytes = MARKS_BYTES;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        bytes += ITEM_BYTES + this.#estimateBytes(value[index], isSecret);
      }
      return bytes;
    }
    const fields = value as JsonObject; // an object: checked above
    for (const key in fields) {
      const item = fields[key];
      if (isSecret(key, item) || this.#holds(key)) return NaN;
      bytes += key.length + KEY_BYTES + this.#estimateBytes(item, isSecret);
    }
    return bytes;
  }

  #holds(text: string): boolean {
    for (let index = 0; index < this.#values.needles.length; index++) {
      if (text.includes(this.#values.needles[index]!)) return true; // index is in the list
    }
    return false;
  }

  #value(value: unknown, isSecret: FieldTest): unknown {
    if (typeof value === "string") return this.redactText(value);
    if (Array.isArray(value)) return this.#list(value, isSecret);
    return isObject(value) && !isPlainImage(value) ? this.#fields(value, isSecret) : value;
  }

  #list(items: readonly unknown[], isSecret: FieldTest): readonly unknown[] {
    let copy: unknown[] | undefined;
    for (let index = 0; index < items.length; index++) {
      const item = this.#value(items[index], isSecret);
      if (item !== items[index]) (copy ??= items.slice())[index] = item;
    }
    return copy ?? items;
  }

  #fields(fields: JsonObject, isSecret: FieldTest): JsonObject {
    let copy: JsonObject | undefined;
    const by_value = this.#values.needles.length > 0;
    for (const key in fields) {
      const value = fields[key];
      const name = by_value ? this.redactText(key) : key;
      const item = isSecret(key, value)
        ? REDACTED
        : by_value || typeof value === "object"
        ? this.#value(value, isSecret)
        : value;
      if (!Object.hasOwn(fields, key)) continue;
      if (copy === undefined) {
        if (item === value && name === key) continue;
        copy = fieldsBefore(fields, key); // in the original order, as derived data must be too
      }
      setField(copy, name, item);
    }
    return copy ?? fields;
  }
}

/** Returns a copy of the fields before one. */
function fieldsBefore(fields: JsonObject, end: string): JsonObject {
  const copy: JsonObject = {};
  for (const key in fields) {
    if (key === end) break;
    if (Object.hasOwn(fields, key)) setField(copy, key, fields[key]);
  }
  return copy;
}

/** Sets a field of any name, including `__proto__`. */
function setField(fields: JsonObject, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns whether a field is redacted because of its name. */
type FieldTest = (key: string, value: unknown) => boolean;

function isSecretField(key: string, value: unknown): boolean {
  if (!isSecretKey(key) || typeof value === "boolean" || value === null || value === "") return false;
  return typeof value !== "string" || !REFERENCE.test(value);
}

function isNoSecretField(): boolean {
  return false;
}

/** Converts `accessToken` and `Access-Token` to `access_token`. */
function snakeCase(key: string): string {
  return key.replaceAll(/(?<=[a-z])(?=[A-Z])|[- ]/g, "_").toLowerCase();
}
