/**
 * The registry of secrets and the redactor, used at the sinks: log, events, errors, store, HTTP. By key name (behaviour.md
 * §4.9) and by value: every expanded `${VAR}` and every API key is registered. Pure: it changes nothing it is given.
 */
import { isObject, type JsonObject } from "../sdk/json.ts";
import { ITEM_BYTES, KEY_BYTES, MARKS_BYTES, SCALAR_BYTES } from "../sdk/size.ts";
import { formsOf } from "./secret_forms.ts";
import { createCut } from "./secret_prefix.ts";

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

/** Secrets that are known by value, and the functions that take them out. */
export class Redactor {
  readonly #forms = new Map<string, string[]>();
  #needles: string[] = [];
  #cut: ((text: string) => number) | undefined;

  /** Creates a redactor that knows these secrets. */
  constructor(secrets: Iterable<string> = []) {
    this.add(...secrets);
  }

  /** Registers secrets. Values under six characters are not looked for; they are redacted by key name alone. */
  add(...secrets: string[]): void {
    const before = this.#forms.size;
    for (const secret of secrets) if (!this.#forms.has(secret)) this.#forms.set(secret, formsOf(secret));
    if (this.#forms.size === before) return;
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
    return (this.#cut ??= createCut(this.#needles))(text);
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
   * Returns JSON data with secrets replaced, by key name and by value, in keys too. What holds none comes back as the same
   * object: `redact(x) === x` tells that nothing was taken out.
   */
  redact<T>(value: T): T {
    return this.#value(value) as T; // text stays text, lists lists, objects objects
  }

  /** Returns what {@link weigh} does, or NaN for data that holds a secret: one walk for both, because every entry of a log takes it. */
  weighClean(value: unknown): number {
    if (typeof value === "string") return this.#holds(value) ? NaN : value.length + MARKS_BYTES;
    if (typeof value !== "object" || value === null) return SCALAR_BYTES;
    let bytes = MARKS_BYTES;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) bytes += ITEM_BYTES + this.weighClean(value[index]);
      return bytes;
    }
    const fields = value as JsonObject; // an object: just looked
    for (const key in fields) {
      const item = fields[key];
      if (holdsSecret(key, item) || this.#holds(key)) return NaN;
      bytes += key.length + KEY_BYTES + this.weighClean(item);
    }
    return bytes;
  }

  #holds(text: string): boolean {
    for (let index = 0; index < this.#needles.length; index++) {
      if (text.includes(this.#needles[index]!)) return true; // index is in the list
    }
    return false;
  }

  #value(value: unknown): unknown {
    if (typeof value === "string") return this.redactText(value);
    if (Array.isArray(value)) return this.#list(value);
    return isObject(value) ? this.#fields(value) : value;
  }

  #list(items: readonly unknown[]): readonly unknown[] {
    let copy: unknown[] | undefined;
    for (let index = 0; index < items.length; index++) {
      const item = this.#value(items[index]);
      if (item !== items[index]) (copy ??= items.slice())[index] = item;
    }
    return copy ?? items;
  }

  #fields(fields: JsonObject): JsonObject {
    let copy: JsonObject | undefined;
    const by_value = this.#needles.length > 0;
    for (const key in fields) {
      const value = fields[key];
      const name = by_value ? this.redactText(key) : key;
      const item = holdsSecret(key, value)
        ? REDACTED
        : by_value || typeof value === "object"
        ? this.#value(value)
        : value;
      if (item === value && name === key || !Object.hasOwn(fields, key)) continue;
      copy ??= { ...fields };
      if (name !== key) delete copy[key];
      Object.defineProperty(copy, name, {
        value: item,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return copy ?? fields;
  }
}

function holdsSecret(key: string, value: unknown): boolean {
  return isSecretKey(key) && typeof value !== "boolean" && value !== null && value !== "";
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
