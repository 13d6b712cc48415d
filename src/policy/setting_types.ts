/**
 * The types of settings, such as a whole number, a duration or a list of hosts. Each validates a value, and
 * describes the meaning, default and range of a setting.
 */
import {
  fitting,
  MIN_DURATION_S,
  MODEL_FORM,
  object,
  readModelName,
  text,
  texts,
} from "../plan/check/field_checks.ts";
import { checkPermissions } from "../plan/check/check_permissions.ts";
import type { FullPermissions } from "../plan/permissions/permission_block.ts";
import { noPermissions } from "../sdk/contracts.ts";
import { parseBlock } from "../sdk/http/ip_address.ts";
import { DEFAULT_ESM_HOST, NO_ESM_HOST } from "../plan/source/source.ts";
import type { Findings } from "../sdk/findings.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe, formatPath, type Path } from "../sdk/value_path.ts";

/** Description and validation of one setting. */
export interface SettingType<T = unknown> {
  /** Conversion of the text of a flag or variable. `data` can be set in the document only. */
  readonly form: "text" | "number" | "boolean" | "list" | "data";
  readonly default: T;
  /** Meaning of the setting for the operator: one sentence without a full stop. */
  readonly meaning: string;
  /** Accepted values, for the operator: `at least 1`. */
  readonly range: string;
  /** Unit of a number, unless the meaning states it. */
  readonly unit?: "bytes" | "seconds" | "US dollars";
  /** Set if the policy of a key cannot have the setting: what to write instead. */
  readonly for_keys?: string;
  /**
   * Validates the value. Returns undefined if it is invalid, after adding a finding. `document` is the
   * whole document.
   */
  read(value: unknown, path: Path, findings: Findings, document: JsonObject): T | undefined;
}

/** Types of settings by key. */
export type SettingTypes = Readonly<Record<string, SettingType>>;

/** Optional fields of a type. */
type More = Pick<SettingType, "unit" | "for_keys"> & { min?: number; max?: number };

/** Returns the `read` of a setting whose values fit a JSON Schema. */
function reading<T>(schema: JsonObject): SettingType<T>["read"] {
  return (value, path, findings) => fitting<T>(value, schema, path, findings);
}

/** Returns the type of a setting: a whole number, at least 1 unless `min` is set. */
export function whole(default_value: number, meaning: string, more: More = {}): SettingType<number> {
  const { min = 1, max, ...facts } = more;
  return {
    form: "number",
    default: default_value,
    meaning,
    range: max === undefined ? `a whole number, at least ${min}` : `a whole number from ${min} to ${max}`,
    ...facts,
    read: reading({ type: "integer", minimum: min, ...(max === undefined ? {} : { maximum: max }) }),
  };
}

/** Returns the type of a setting: a number of bytes. */
export function bytes(default_value: number, meaning: string, more: More = {}): SettingType<number> {
  return whole(default_value, meaning, { unit: "bytes", ...more });
}

/** Returns the type of a setting: a duration in seconds, which may have a fraction. */
export function seconds(default_value: number, meaning: string): SettingType<number> {
  return {
    form: "number",
    default: default_value,
    meaning,
    range: `a number, at least ${MIN_DURATION_S}`,
    unit: "seconds",
    read: reading({ type: "number", minimum: MIN_DURATION_S }),
  };
}

/** Returns the type of a setting: an amount of US dollars. */
export function dollars(default_value: string, meaning: string): SettingType<string> {
  return {
    form: "text",
    default: default_value,
    meaning,
    range: 'a decimal number in quotes, such as "0.50"',
    unit: "US dollars",
    read: reading({ type: "string", format: "decimal" }),
  };
}

/** Returns the type of a setting: a boolean. */
export function flag(default_value: boolean, meaning: string): SettingType<boolean> {
  const read = reading<boolean>({ type: "boolean" });
  return { form: "boolean", default: default_value, meaning, range: "true or false", read };
}

/** Returns the type of a setting: a text that is not blank. */
export function words(default_value: string, meaning: string, range: string): SettingType<string> {
  return {
    form: "text",
    default: default_value,
    meaning,
    range,
    read: (value, path, findings) => text(value, path, findings),
  };
}

/** Returns the type of a setting: a path before that of each URL, which may be empty. */
export function basePath(meaning: string): SettingType<string> {
  return {
    ...words("", meaning, "a path such as /agents"),
    read(value, path, findings) {
      const written = value === "" ? "" : text(value, path, findings);
      const prefix = written === undefined ? undefined : basePathIn(written);
      if (written !== undefined && prefix === undefined) {
        const message = `Cannot read a path: must be names that each begin with a slash: received ${
          describe(written)
        }`;
        findings.error(path, "value", message, "write a path such as /agents");
      }
      return prefix;
    },
  };
}

/** Returns a path prefix without a slash at its end; undefined for another text. */
export function basePathIn(path: string): string | undefined {
  if (path === "" || path === "/") return "";
  const prefix = path.endsWith("/") ? path.slice(0, -1) : path;
  const is_path = /^(?:\/[\w.~-]+)+$/.test(prefix) &&
    new URL(prefix, "http://localhost").pathname === prefix;
  return is_path ? prefix : undefined;
}

/** Returns the type of a setting: a model, which may be empty. */
export function modelName(meaning: string): SettingType<string> {
  return {
    ...words("", meaning, MODEL_FORM),
    read(value, path, findings) {
      const name = value === "" ? "" : text(value, path, findings);
      if (name === undefined || name === "" || readModelName(name) !== null) return name;
      const message = `Cannot read ${formatPath(path)}: must be ${MODEL_FORM}: received ${describe(name)}`;
      findings.error(path, "value", message, "preamp provider list lists the providers");
      return undefined;
    },
  };
}

/** Texts of lasting stores: `src/store/store.ts` opens them. */
const STORE = /^(sqlite:.|postgres(ql)?:\/\/[^/])/;
const STORE_RANGE = "auto, memory, sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE";
/** Deno KV, which was a store once. */
const NO_KV = "Deno KV is no store any more: choose sqlite:PATH for one machine, or postgres://… for several";

function isStoreName(text: string): boolean {
  return STORE.test(text) && (!text.startsWith("postgres") || URL.canParse(text));
}

/** Returns the type of a setting: the store. */
export function storeName(meaning: string): SettingType<string> {
  return {
    ...words("auto", meaning, STORE_RANGE),
    read(value, path, findings) {
      const store = text(value, path, findings);
      if (store === undefined || store === "auto" || store === "memory" || isStoreName(store)) return store;
      // the URL of a store may contain a password, so only its scheme is displayed
      const [scheme = ""] = store.split(":");
      const display = store.includes(":") ? `"${scheme.slice(0, 20)}:…"` : describe(store);
      const advice = scheme === "kv" ? NO_KV : undefined;
      findings.error(path, "value", `Cannot use store ${display}: must be ${STORE_RANGE}`, advice);
      return undefined;
    },
  };
}

/** Returns the type of a setting: the server of npm and JSR packages as ES modules. */
export function esmHost(meaning: string): SettingType<string> {
  return {
    ...words(
      DEFAULT_ESM_HOST,
      meaning,
      `an https:// URL, an http:// URL of a private host, or ${NO_ESM_HOST}`,
    ),
    for_keys: "set modules.esm_host of the server",
    read(value, path, findings) {
      const written = text(value, path, findings);
      if (written === undefined || written === NO_ESM_HOST || isBaseUrl(written)) return written;
      const message = `Cannot read esm_host: must be a URL without query, or ${NO_ESM_HOST}: received ${
        describe(written)
      }`;
      findings.error(path, "value", message, `such as ${DEFAULT_ESM_HOST}`);
      return undefined;
    },
  };
}

/** Returns whether a text is a URL of the web with nothing but scheme, host, port and path. */
function isBaseUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && isWeb(url) && `${url.username}${url.password}${url.search}${url.hash}` === "";
}

function isWeb({ protocol }: URL): boolean {
  return protocol === "https:" || protocol === "http:";
}

/** Returns the origin of a web page as a browser writes it; undefined if the text is not a web origin. */
export function originIn(text: string): string | undefined {
  const url = URL.parse(text);
  return url !== null && isWeb(url) ? url.origin : undefined;
}

/** What the entries of a list must be. */
interface EntryRule {
  /** What to write instead of something that is not a list of texts. */
  readonly hint: string;
  /** What an entry is, such as `a host`. */
  readonly name: string;
  /** What an entry must be, such as `host or host:port`. */
  readonly form: string;
  accepts(entry: string): boolean;
  /** Returns what to write instead of an entry. */
  advice?(entry: string): string | undefined;
}

/** Returns the type of a setting: a list of texts. */
function list(meaning: string, range: string, entries?: EntryRule): SettingType<string[]> {
  return {
    form: "list",
    default: [],
    meaning,
    range,
    read(value, path, findings) {
      const read = texts(value, path, findings, entries?.hint);
      if (!entries) return read;
      for (const [index, entry] of read?.entries() ?? []) {
        if (entries.accepts(entry)) continue;
        const message = `Cannot read ${entries.name}: must be ${entries.form}: received ${describe(entry)}`;
        findings.error([...path, index], "value", message, entries.advice?.(entry));
      }
      return read;
    },
  };
}

/** Returns the type of a setting: a list of variable names. */
export function names(meaning: string): SettingType<string[]> {
  return list(meaning, "a list of names", {
    hint: "write names, such as [ORDERS_TOKEN]",
    name: "a name",
    form: "a whole name of letters, digits and _",
    accepts: (entry) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(entry),
  });
}

/** Returns the type of a setting: a list of IP addresses and blocks of them. */
export function addressBlocks(meaning: string): SettingType<string[]> {
  return list(meaning, "a list of addresses and blocks, such as 127.0.0.1 and 10.0.0.0/8", {
    hint: 'write addresses, such as ["127.0.0.1", "10.0.0.0/8"]',
    name: "an address",
    form: "an IP address, or a block such as 10.0.0.0/8",
    accepts: (entry) => parseBlock(entry) !== null,
  });
}

/** Returns the type of a setting: a list of hosts. */
export function hosts(meaning: string): SettingType<string[]> {
  return list(meaning, "a list of host or host:port", {
    hint: 'write hosts, such as ["127.0.0.1:9000"]',
    name: "a host",
    form: "host or host:port",
    accepts: (entry) => !/[/@]/.test(entry) && URL.canParse(`http://${entry}/`),
  });
}

/** Returns the type of a setting: a list of web origins. */
export function origins(meaning: string): SettingType<string[]> {
  return list(meaning, "a list of origins such as https://app.example.com; * is not allowed", {
    hint: 'write origins of web pages, such as ["https://app.example.com"]',
    name: "an origin",
    form: "scheme, host and port of a web page",
    accepts: (entry) => originIn(entry) === entry,
    advice(entry) {
      const origin = originIn(entry);
      return origin === undefined ? "list each origin, such as https://app.example.com" : `write ${origin}`;
    },
  });
}

const PREFIX: EntryRule = {
  hint: 'write URL prefixes, such as ["https://modules.example.com/agents/"]',
  name: "a prefix",
  form: 'an https:// or http:// URL without query, or "data:"',
  accepts: (entry) => entry === "data:" || isBaseUrl(entry) || URL.parse(entry)?.protocol === "file:",
};

/** Returns the type of a setting: a list of URL prefixes. */
export function urlPrefixes(meaning: string): SettingType<string[]> {
  return list(meaning, 'a list of https:// or http:// URLs without a query, or "data:"', PREFIX);
}

/** Returns the type of a setting: a list of URL prefixes whose code is trusted, and files of this machine. */
export function trustedPrefixes(meaning: string): SettingType<string[]> {
  return list(
    meaning,
    'a list of https:// or http:// URLs without a query, file:// URLs of files, or "data:"',
    {
      ...PREFIX,
      form: 'an https:// or http:// URL without query, the file:// URL of one file, or "data:"',
      accepts: (entry) => PREFIX.accepts(entry) && !/^file:.*\/$/i.test(entry),
      advice: (entry) =>
        /^(file:|\.{0,2}\/)/i.test(entry)
          ? "a folder makes no module trusted: preamp plan vendor --inline writes into the plan which modules are"
          : undefined,
    },
  );
}

/** Returns the type of a setting: MCP servers by name. `tool-mcp` checks the rest when it mounts them. */
export function mcpServers(meaning: string): SettingType<Record<string, JsonObject>> {
  return {
    form: "data",
    default: {},
    meaning,
    range: "names of servers, each with url, command or npm as in a plan",
    read(value, path, findings) {
      const servers = object(value, path, findings, "write servers: { name: { command: [program] } }");
      for (const [name, server] of Object.entries(servers ?? {})) {
        const forms = ["url", "command", "npm"].filter((form) =>
          isObject(server) && Object.hasOwn(server, form)
        );
        if (forms.length === 1) continue;
        const message = `Cannot read server ${describe(name)}: must have one of url, command and npm`;
        findings.error([...path, name], "value", message);
      }
      return servers as Record<string, JsonObject> | undefined; // each is an object, or there is an error
    },
  };
}

/**
 * Returns the type of a setting: what callers may be granted. Permissions that it does not name are not
 * granted. Callers never get `run` and `ffi`, which bypass every other permission.
 */
export function callerPermissions(meaning: string): SettingType<FullPermissions> {
  return {
    form: "data",
    default: noPermissions(),
    meaning,
    range: "net, read, write, env, sys, import, each true, false or a list",
    read(value, path, findings) {
      const block = checkPermissions(value, path, findings);
      for (const name of ["run", "ffi"] as const) {
        const asked = block?.[name];
        if (asked === undefined || asked === false || Array.isArray(asked) && asked.length === 0) continue;
        const message = `Cannot give callers ${name}: it bypasses every other permission`;
        findings.error([...path, name], "value", message, "only an operator's plan may have it");
      }
      return block && { ...noPermissions(), ...block };
    },
  };
}
