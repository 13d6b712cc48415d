/**
 * Defines every setting of `preamp.yaml` in one table: meaning, unit, default and range. Parsing, flags,
 * variables, defaults, `preamp help serve`, `preamp config example` and the page of settings are made from
 * it. The limits are in limits.ts, the types of values in setting_types.ts; names are those of `Policy`.
 */
import { apiKeys } from "./api_keys.ts";
import { LIMITS } from "./limits.ts";
import type { Policy } from "./policy.ts";
import { text } from "../plan/check/field_checks.ts";
import type { JsonObject } from "../sdk/json.ts";
import {
  addressBlocks,
  basePath,
  bytes,
  callerPermissions,
  esmHost,
  flag,
  hosts,
  mcpServers,
  modelName,
  names,
  origins,
  seconds,
  type SettingType,
  type SettingTypes,
  storeName,
  trustedPrefixes,
  urlPrefixes,
  whole,
  words,
} from "./setting_types.ts";

/** Top-level keys that are settings. */
export type SingleName = "plans" | "workspace" | "model" | "store" | "page";

/** Top-level keys that contain settings. */
export type SectionName = Exclude<keyof Policy, SingleName | "policies">;

/** Top-level keys that are settings. */
export const SINGLES: { readonly [Name in SingleName]: SettingType<Policy[Name]> } = {
  plans: words("plans/", "Folder of the operator's named plans", "a folder, relative to preamp.yaml"),
  workspace: {
    ...words(
      "",
      "Folder that ${WORKSPACE} in plans means; empty: the folder of the plan's file, and for run and your own server the current one",
      "a folder, relative to preamp.yaml",
    ),
    read: (value, path, findings) => value === "" ? "" : text(value, path, findings),
  },
  model: modelName("Model of the demo agent, which runs when a request names no plan"),
  store: storeName(
    "Store of runs and sessions; auto is sqlite:$PREAMP_HOME/preamp.db for serve, chat and run --session, else memory",
  ),
  page: flag(true, "Shows the page for browsers at /, which calls the API with the key of its reader"),
};

/** Sections of settings. */
export const SECTIONS: {
  readonly [Name in SectionName]: { readonly [Key in keyof Policy[Name]]: SettingType<Policy[Name][Key]> };
} = {
  listen: {
    host: words(
      "127.0.0.1",
      "Address to listen on; without keys it must be a loopback address",
      "an address of this machine",
    ),
    port: whole(8484, "Port to listen on; 0 picks a free one", { min: 0, max: 65_535 }),
    trusted_proxies: addressBlocks(
      "Reverse proxies whose Forwarded and X-Forwarded-* headers are trusted: client, scheme and host",
    ),
    base_path: basePath("Path before that of each URL, which a reverse proxy passes on"),
    heartbeat_s: whole(
      0,
      "Seconds between the bytes of a response that waits, for a proxy that cuts silent ones; 0: none in JSON",
      { min: 0 },
    ),
  },
  cors: {
    origins: origins("Origins whose web pages may send requests to this server and read its responses"),
  },
  store_limits: {
    max_entries: whole(
      1_000_000,
      "Entries of all logs in memory; beyond it, the oldest logs of ended runs are dropped",
    ),
    max_records: whole(
      50_000,
      "Runs in memory, and sessions; beyond it, the least recently used are dropped",
    ),
    max_bytes: bytes(
      512 * 1024 * 1024,
      "Size of the memory store; beyond it, logs are dropped, then records",
    ),
  },
  postgres: {
    connections: whole(10, "Most connections of this server to Postgres; one more listens for changes"),
    named_statements: flag(
      true,
      "Gives statements names, so that Postgres plans each once; false behind PgBouncer before 1.21",
    ),
  },
  retention: {
    days: whole(30, "Days that a run is kept after its end, and a session after its last run"),
    idempotency_hours: whole(24, "Hours that an Idempotency-Key is remembered"),
  },
  metrics: {
    open: flag(false, "Answers GET /metrics without a key, for a server that only trusted machines reach"),
  },
  tracing: {
    content: flag(
      false,
      "Adds prompts, answers, and inputs and outputs of tools to spans; secrets are redacted",
    ),
  },
  rates: {
    requests_per_minute: whole(600, "Requests that one key may send in a minute; 0 = no limit", { min: 0 }),
    runs_per_minute: whole(120, "Runs that one key may start in a minute; 0 = no limit", { min: 0 }),
  },
  auth: {
    keys: apiKeys("Keys that may call the API, each as its SHA-256; PREAMP_API_KEYS adds more"),
  },
  modules: {
    allow: urlPrefixes("URLs that the plans of callers may load modules from"),
    inline: trustedPrefixes("URLs of modules that run in the server's process, without a sandbox"),
    frozen: flag(false, "Refuses modules that neither the plan nor its lock pins"),
    private_hosts: hosts("Private and loopback hosts that modules may be fetched from"),
    esm_host: esmHost("Server of npm: and jsr: packages as ES modules"),
  },
  env: {
    allow: names("Variables that the plans of callers may name as ${VAR}"),
  },
  mcp: {
    servers: mcpServers("MCP servers that every plan may use by name, in listed of tool-mcp"),
  },
  permissions: {
    max: callerPermissions("The most that a module in the plan of a caller may be granted"),
  },
  isolation: {
    memory_mb: whole(256, "Megabytes of memory that one sandbox may use", { min: 16 }),
    cpu_s: whole(30, "Seconds of processor time that one call of a sandbox may use"),
    load_timeout_s: seconds(
      10,
      "Time that the import and the mount of a module may take, without waits for a busy processor",
    ),
    max_guests: whole(64, "Sandboxes at the same time", {
      for_keys: "set isolation.max_guests of the server; max_guests_per_session applies to each session",
    }),
    max_guests_per_session: whole(16, "Sandboxes of one session"),
  },
  limits: LIMITS,
};

/** Sections that the policy of one key may have. */
export const OVERLAY_SECTIONS = ["limits", "permissions", "modules", "env", "isolation", "rates"] as const;

/** Returns the policy of a server without `preamp.yaml`, as a new copy. Its defaults are safe. */
export function defaultPolicy(): Policy {
  const defaults: Record<string, unknown> = { policies: {}, ...defaultsOf(SINGLES) };
  for (const [name, types] of Object.entries<SettingTypes>(SECTIONS)) defaults[name] = defaultsOf(types);
  return defaults as unknown as Policy; // the table has a default of the right type for each key
}

function defaultsOf(types: SettingTypes): Record<string, unknown> {
  const entries = Object.entries<SettingType>(types);
  return Object.fromEntries(entries.map(([key, type]) => [key, structuredClone(type.default)]));
}

/** One setting of `preamp.yaml`. */
export interface Setting extends Omit<SettingType, "read"> {
  /** Dotted name, also the name of its flag: `limits.max_cost_usd`. */
  readonly path: string;
}

/** A setting that a flag or a variable can set. */
export interface OutsideSetting extends Setting {
  /** Form of its text. Lists are comma-separated. */
  readonly form: Exclude<SettingType["form"], "data">;
  /** Name of the environment variable. */
  readonly variable: string;
}

/** Every setting but `policies`, in the order of the table. */
export const ALL_SETTINGS: readonly Setting[] = [
  ...settingsOf("", SINGLES),
  ...Object.entries<SettingTypes>(SECTIONS).flatMap(([section, types]) => settingsOf(`${section}.`, types)),
];

/** Every setting that a flag or a variable can set. The others need a document. */
export const OUTSIDE_SETTINGS: readonly OutsideSetting[] = ALL_SETTINGS.flatMap((setting) => {
  const { form, path } = setting;
  const variable = `PREAMP_${path.replaceAll(".", "_").toUpperCase()}`;
  return form === "data" ? [] : [{ ...setting, form, variable }];
});

function settingsOf(prefix: string, types: SettingTypes): Setting[] {
  return Object.entries(types).map(([key, { read: _, ...facts }]) => ({ path: `${prefix}${key}`, ...facts }));
}

/** Returns the valid values of a setting for display: `bytes, a whole number, at least 1`. */
export function valuesOf({ unit, range }: Setting): string {
  return unit === undefined ? range : `${unit}, ${range}`;
}

/**
 * Returns settings as policy data, to merge over a document with `mergePlans` and to read with
 * `policyFromData`. Text of the wrong form is kept, so that the check reports it.
 */
export function settingsToData(textOf: (setting: OutsideSetting) => string | undefined): JsonObject {
  const data: { [section: string]: JsonObject | unknown } = {};
  for (const setting of OUTSIDE_SETTINGS) {
    const text = textOf(setting);
    if (text === undefined) continue;
    const [section = "", key] = setting.path.split(".");
    const value = valueOf(text, setting.form);
    if (key === undefined) data[section] = value;
    else data[section] = { ...data[section] as JsonObject | undefined, [key]: value };
  }
  return data;
}

/** Returns the items of a comma-separated list, without spaces around them and empty ones. */
export function commaSeparated(text: string): string[] {
  return text.split(",").map((item) => item.trim()).filter((item) => item !== "");
}

function valueOf(text: string, form: OutsideSetting["form"]): unknown {
  if (form === "list") return commaSeparated(text);
  if (form === "boolean") {
    return text === "true" || text === "1" ? true : text === "false" || text === "0" ? false : text;
  }
  return form === "number" && text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
