/**
 * Replaces what is a secret by its place in a plan: values of `headers` and `env`, users and query values of
 * URLs, words after options such as `--token`. References to variables stay: they are no secrets.
 */
import { isObject, type JsonObject } from "../sdk/json.ts";
import { isSecretKey, REDACTED } from "./redact.ts";

/** Names of options that are no names of fields. */
const SECRET_OPTIONS: ReadonlySet<string> = new Set(["key", "pass", "pw", "pwd", "pat", "bearer"]);
/** Options whose word is `Name: value` or `NAME=value`. */
const PAIR_OPTIONS: ReadonlySet<string> = new Set(["-H", "--header", "-e", "--env"]);
/** References, also after the name of a scheme such as `Bearer`. */
const REFERENCES = /^(?:[A-Za-z][\w-]* )?(?:\$\{[A-Za-z_][A-Za-z0-9_-]*\})+$/;

/** Fields with headers or variables by name: `headers`, `extra_headers`, `env`. */
const MAPS = /(^|[a-z_-])(headers|env|environment)$/i;

/** Returns a copy of a plan without the secrets that their places tell. */
export function withoutPlanSecrets(plan: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(plan).map(([key, value]) => {
      if (!MAPS.test(key)) return [key, valueOf(value)];
      if (Array.isArray(value)) return [key, value.map(pairIn)];
      return [key, isObject(value) ? hidden(value) : valueOf(value)];
    }),
  );
}

function valueOf(value: unknown): unknown {
  if (typeof value === "string") return textOf(value);
  if (Array.isArray(value)) return wordsOf(value);
  return isObject(value) ? withoutPlanSecrets(value) : value;
}

/** Returns headers or variables with the values replaced; a grant such as `env: true` has none. */
function hidden(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, typeof value === "boolean" ? value : secret(value)]),
  );
}

function secret(value: unknown): unknown {
  if (value === null || value === "") return value;
  return typeof value === "string" && REFERENCES.test(value) ? value : REDACTED;
}

/** Returns a list in which the word after an option that names a secret is replaced. */
function wordsOf(words: readonly unknown[]): unknown[] {
  return words.map((word, index) => {
    const before = words[index - 1];
    if (typeof word !== "string") return valueOf(word);
    if (typeof before === "string" && PAIR_OPTIONS.has(before)) return pairIn(word);
    return typeof before === "string" && isSecretOption(before) && !word.startsWith("--")
      ? secret(word)
      : textOf(word);
  });
}

function isSecretOption(word: string): boolean {
  const name = /^--?([A-Za-z][\w-]*)$/.exec(word)?.[1];
  return name !== undefined && isSecretName(name);
}

function isSecretName(name: string): boolean {
  return isSecretKey(name) || SECRET_OPTIONS.has(name.toLowerCase()) || /[-_]key$/i.test(name);
}

/** Returns `Name: value` or `NAME=value` with the value replaced; another value as it is. */
function pairIn(item: unknown): unknown {
  if (typeof item !== "string") return valueOf(item);
  const [, name, value] = /^([\w-]+(?:=|: ?))(.*)$/s.exec(item) ?? [];
  return name === undefined ? textOf(item) : `${name}${secret(value)}`;
}

/** A URL in a text. The scheme is short, so that each character is read a few times at most. */
const URLS = /(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}:\/\/[^\s"'<>]+/gi;
/** An option or a variable, and its value. */
const OPTIONS = /(^|\s)(-{0,2})([A-Za-z][\w-]*)(=|\s+)(?=\S)("[^"]*"|'[^']*'|\S+)/g;

/** Returns a text with the secrets of its URLs and of its options replaced. */
function textOf(text: string): string {
  const urls = text.includes("://") ? text.replaceAll(URLS, urlOf) : text;
  if (!/[=-]/.test(urls)) return urls;
  return urls.replaceAll(
    OPTIONS,
    (all: string, space: string, dashes: string, name: string, sign: string, value: string) => {
      const is_option = dashes !== "" || sign === "=";
      if (!is_option || !isSecretName(name) || sign !== "=" && value.startsWith("--")) return all;
      return `${space}${dashes}${name}${sign}${secret(value)}`;
    },
  );
}

/** Returns a URL with its user and the values of its query replaced. */
function urlOf(url: string): string {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(url) ?? [];
  const end = rest.search(/[/?#]/);
  const authority = end < 0 ? rest : rest.slice(0, end);
  const at = authority.lastIndexOf("@");
  const user = at < 0 ? "" : `${userOf(authority.slice(0, at))}@`;
  const [path = "", ...fragment] = (end < 0 ? "" : rest.slice(end)).split("#");
  const [before, ...query] = path.split("?");
  const pairs = query.join("?").split("&").map((pair) => {
    const sign = pair.indexOf("=");
    return sign < 0 ? pair : `${pair.slice(0, sign + 1)}${secret(pair.slice(sign + 1))}`;
  }).join("&");
  const asked = query.length === 0 ? "" : `?${pairs}`;
  const tail = fragment.length === 0 ? "" : `#${fragment.join("#")}`;
  return `${scheme}${user}${authority.slice(at + 1)}${before}${asked}${tail}`;
}

/** Returns a user and a password, of which references stay. */
function userOf(text: string): string {
  return text.split(":").every((part) => part === "" || REFERENCES.test(part)) ? text : REDACTED;
}
