/**
 * The registry of secrets and the redactor, used at the sinks: log, events, errors, store, HTTP. Values of known secrets are
 * redacted everywhere: every expanded `${VAR}` and every API key is registered. Fields are redacted by name (behaviour.md
 * §4.9) in configs, plans, headers and the events of modules; never in the runtime's own events, which replay and resume.
 * Pure: it changes nothing it is given.
 */
import { type ErrorCode, errorCode, errorMessage, errorName, PreampError } from "../sdk/errors.ts";
import { eventsWith } from "../sdk/events.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { ITEM_BYTES, KEY_BYTES, MARKS_BYTES, SCALAR_BYTES } from "../sdk/json_size.ts";
import { formsOf } from "./secret_encodings.ts";
import { createPartialSecretFilter } from "./partial_secrets.ts";

/** What stands in place of a secret. */
export const REDACTED = "[REDACTED]";

/** Whole keys, compared without case, hyphens and underscores (behaviour.md §4.9). */
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

/** Ends of longer keys, such as `client_secret`; never `_tokens`, which counts. */
const SECRET_ENDS = ["_token", "_secret", "_password", "_api_key", "_private_key", "_credentials"];

/** Field names that were judged before: every entry of a log has the same few. */
const judged = new Map<string, boolean>();

/** Returns true when a field of this name holds a secret: `api_key`, `accessToken`, `X-Api-Key`; not `total_tokens`. */
export function isSecretKey(key: string): boolean {
  if (key.length > 100) return false;
  let secret = judged.get(key);
  if (secret === undefined) {
    if (judged.size >= 2_000) judged.clear(); // names may be a stranger's: keep it bounded
    judged.set(key, secret = namesSecret(key));
  }
  return secret;
}

function namesSecret(key: string): boolean {
  const name = snakeCase(key);
  return SECRET_KEYS.has(name.replaceAll("_", "")) || SECRET_ENDS.some((end) => name.endsWith(end));
}

/** Events whose fields are the runtime's: their values are redacted, but no field for its name. */
const OWN_FIELDS = eventsWith("own_fields");

/** Number of secrets of ended runs that a process still redacts from its log. Our choice: each costs time for a line. */
const MAX_RUN_SECRETS = 1_000;

/** Returns the redactor of a process: it knows these secrets, and those of its latest runs, which have a child of it each. */
export function processRedactor(secrets: Iterable<string>): Redactor {
  return new Redactor(secrets, { max_values: MAX_RUN_SECRETS });
}

/** Options of a redactor. */
export interface RedactorOptions {
  /** Another redactor that gets every secret too. */
  parent?: Redactor;
  /** Number of registered values that are kept; the oldest are forgotten first. Default: all. */
  max_values?: number;
}

/** Secrets that are known by value, and the functions that take them out. */
export class Redactor {
  readonly #forms = new Map<string, string[]>();
  readonly #options: RedactorOptions;
  /** Values that are never forgotten. */
  readonly #given: ReadonlySet<string>;
  #needles: string[] = [];
  #cut: ((text: string) => number) | undefined;

  /** Creates a redactor that knows these secrets for good. */
  constructor(secrets: Iterable<string> = [], options: RedactorOptions = {}) {
    this.#given = new Set(secrets);
    this.#options = options;
    this.add(...this.#given);
  }

  /** Returns a redactor that knows the values this one was created with; this one gets every further secret too. */
  child(): Redactor {
    return new Redactor(this.#given, { parent: this });
  }

  /** Registers secrets. Values under six characters are not looked for; they are redacted by key name alone. */
  add(...secrets: string[]): void {
    const { parent, max_values = Infinity } = this.#options;
    parent?.add(...secrets);
    const before = this.#forms.size;
    for (const secret of secrets) if (!this.#forms.has(secret)) this.#forms.set(secret, formsOf(secret));
    if (this.#forms.size === before) return;
    for (const oldest of this.#forms.keys()) {
      if (this.#forms.size <= max_values + this.#given.size) break;
      if (!this.#given.has(oldest)) this.#forms.delete(oldest);
    }
    this.#cut = undefined;
    // longest first: a secret that holds another one goes as a whole
    this.#needles = [...new Set([...this.#forms.values()].flat())].sort((a, b) => b.length - a.length);
  }

  /** {@link Redactor.add} of one. */
  register(secret: string): void {
    this.add(secret);
  }

  /** Returns how many characters at the end of a text are to wait for what follows: they may be the beginning of a secret. */
  held(text: string): number {
    return (this.#cut ??= createPartialSecretFilter(this.#needles))(text);
  }

  /** Number of registered values. */
  get size(): number {
    return this.#forms.size;
  }

  /** Returns text with every spelling of every secret replaced; the same text when it holds none. */
  redactText(text: string): string {
    let result = text;
    for (const needle of this.#needles) {
      if (result.includes(needle)) result = result.replaceAll(needle, REDACTED);
    }
    return result;
  }

  /**
   * Returns JSON data with secrets replaced, by key name and by value, in keys too: for configs, plans and headers. Data
   * without a secret are returned as the same object.
   */
  redact<T>(value: T): T {
    return this.#value(value, isSecretField) as T; // text stays text, lists lists, objects objects
  }

  /** Returns what {@link redact} does, by value alone: for what a conversation is made of. */
  redactValues<T>(value: T): T {
    return this.#needles.length === 0 ? value : this.#value(value, isNoSecretField) as T; // as above
  }

  /** Returns the data of an event with its secrets replaced; those of a module's own event by key name too. */
  redactEvent<T>(event: string, data: T): T {
    if (!OWN_FIELDS.has(event)) return this.redact(data);
    return this.redactValues(event === "prompt:complete" ? this.#withWholePreview(data) : data);
  }

  /** Returns the data of `prompt:complete` whose preview of a longer answer does not end in the middle of a secret. */
  #withWholePreview<T>(data: T): T {
    if (this.#needles.length === 0 || !isObject(data)) return data;
    const { response_preview: preview, length } = data;
    if (typeof preview !== "string" || [...preview].length >= Number(length)) return data;
    const held = this.held(preview);
    return held === 0 ? data : { ...data, response_preview: preview.slice(0, -held) };
  }

  /** Returns an error without secrets in what is displayed of it; the same one when it holds none. */
  redactError(error: unknown): unknown {
    const { details = [], facts = {}, stack = "" } = error instanceof Error
      ? error as Partial<PreampError>
      : {};
    const displayed = { message: errorMessage(error), details, facts, stack };
    const redacted = this.redactValues(displayed);
    if (redacted === displayed) return error;
    const { message, ...rest } = redacted;
    const code = errorCode(error) as ErrorCode | undefined; // a code of ours, or `internal` where it is displayed
    const copy = code === undefined ? new Error(message) : new PreampError(code, message, rest);
    return Object.defineProperties(copy, {
      name: { value: errorName(error), configurable: true },
      stack: { value: rest.stack, configurable: true },
    });
  }

  /**
   * Returns what {@link weigh} does for the data of an event, or NaN when they hold a secret: one walk for both, because every
   * entry of a log takes it.
   */
  weighEvent(event: string, data: unknown): number {
    if (event === "prompt:complete" && this.#withWholePreview(data) !== data) return NaN;
    return this.#weigh(data, OWN_FIELDS.has(event) ? isNoSecretField : isSecretField);
  }

  #weigh(value: unknown, isSecret: FieldTest): number {
    if (typeof value === "string") return this.#holds(value) ? NaN : value.length + MARKS_BYTES;
    if (typeof value !== "object" || value === null) return SCALAR_BYTES;
    let bytes = MARKS_BYTES;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        bytes += ITEM_BYTES + this.#weigh(value[index], isSecret);
      }
      return bytes;
    }
    const fields = value as JsonObject; // an object: just looked
    for (const key in fields) {
      const item = fields[key];
      if (isSecret(key, item) || this.#holds(key)) return NaN;
      bytes += key.length + KEY_BYTES + this.#weigh(item, isSecret);
    }
    return bytes;
  }

  #holds(text: string): boolean {
    for (let index = 0; index < this.#needles.length; index++) {
      if (text.includes(this.#needles[index]!)) return true; // index is in the list
    }
    return false;
  }

  #value(value: unknown, isSecret: FieldTest): unknown {
    if (typeof value === "string") return this.redactText(value);
    if (Array.isArray(value)) return this.#list(value, isSecret);
    return isObject(value) ? this.#fields(value, isSecret) : value;
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
    const by_value = this.#needles.length > 0;
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
        copy = fieldsBefore(fields, key); // in their order, which what is made of them has too
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

/** Sets a field whatever its name is, `__proto__` too. */
function setField(fields: JsonObject, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns whether a field is redacted for its name. */
type FieldTest = (key: string, value: unknown) => boolean;

function isSecretField(key: string, value: unknown): boolean {
  return isSecretKey(key) && typeof value !== "boolean" && value !== null && value !== "";
}

function isNoSecretField(): boolean {
  return false;
}

/** `accessToken` and `Access-Token` → `access_token`. */
function snakeCase(key: string): string {
  let name = "";
  for (let index = 0; index < key.length; index++) {
    const letter = key[index]!;
    const upper = letter >= "A" && letter <= "Z";
    const previous = key[index - 1];
    const boundary = upper && previous !== undefined && previous >= "a" && previous <= "z";
    if (boundary) name += "_";
    name += letter === "-" || letter === " " ? "_" : letter.toLowerCase();
  }
  return name;
}
