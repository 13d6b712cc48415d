/**
 * Reads the settings of this process, and opens the store that they name. A flag overrides a variable, a
 * variable overrides `preamp.yaml`, and that overrides the default (src/docs/operating.md#settings). Every
 * error names the flag, variable or file of the value.
 */
import { mergeAll } from "../plan/merge.ts";
import { entriesOfKeys } from "../policy/api_keys.ts";
import { policyFromData } from "../policy/parse_policy.ts";
import type { Policy } from "../policy/policy.ts";
import {
  commaSeparated,
  OUTSIDE_SETTINGS,
  type OutsideSetting,
  settingsToData,
  valuesOf,
} from "../policy/settings.ts";
import { isFolderPath } from "../policy/setting_types.ts";
import { errorMessage, hasCode, type PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describeStore, openStore, parseStoreName, type Store, type StoreName } from "../store/store.ts";
import { NamedPlans, personalPlans, type PlanFolder } from "../app/named_plans.ts";
import type { SourcesFile } from "../app/source_overrides.ts";
import { adviceFor, type Arguments, type Flag, UsageError } from "./arguments.ts";
import { styleOf } from "./terminal/format.ts";
import { filePath, homeOf, locate, readOptional } from "./paths.ts";
import { parseVariables } from "./folder/env_file.ts";
import { type FolderUse, openFolder, type UsedFolder } from "./folder/folder.ts";
import { SETTINGS_FILE, VARIABLES_FILE } from "./folder/folder_files.ts";
import { userSources } from "./source_files.ts";
import type { Io } from "./terminal/io.ts";

/** The settings of a command. */
export interface Settings {
  policy: Policy;
  /** Folder of named plans: that of the settings; null: the command asked for none ({@link SettingsUse}). */
  plans: PlanFolder | null;
  /**
   * That folder and `plans/` in `home`. The person's own come before those of the folder in which the command
   * is started, and after those of a folder that was named.
   */
  plan_folders: readonly PlanFolder[];
  /** The plans of `plan_folders`. */
  all_plans: NamedPlans;
  /** Folder of `--workspace` or the setting, ending in a slash; null: not set. */
  workspace: URL | null;
  /** `$PREAMP_HOME`, else `~/.preamp`, ending in a slash; null where there is no home folder. */
  home: URL | null;
  /** Files of source overrides. For a module in several files the first file applies. */
  sources: readonly SourcesFile[];
  /**
   * The store. `auto`: a file in `home` where runs shall last, else memory. The path of a file is absolute.
   */
  store: StoreName | "auto" | "memory";
  /** The keys of `PREAMP_API_KEYS`. They are secrets. */
  api_keys: readonly string[];
  /** Returns a variable of this process, else of a trusted `.env`: for keys, addresses and `${VAR}`. */
  env(name: string): string | undefined;
  /** What is used of the folder in which the command is started. */
  folder: Pick<UsedFolder, "names" | "ignored">;
  /**
   * Warnings about variables that begin with `PREAMP_` and mean nothing to the command, or that may not be
   * read, so that neither disables a limit unnoticed.
   */
  warnings: readonly string[];
}

/** Setting → short name of its flag. */
const SHORT_FLAGS: Readonly<Record<string, string>> = {
  "listen.host": "host",
  "listen.port": "port",
  "listen.trusted_proxies": "behind-proxy",
};

/** Setting → short name of its variable. */
const SHORT_VARIABLES: Readonly<Record<string, string>> = {
  "listen.host": "PREAMP_HOST",
  "listen.port": "PREAMP_PORT",
  "retention.days": "PREAMP_RETENTION_LOG_DAYS", // its name in earlier versions
};

/** Variables that are not settings of `preamp.yaml`. */
const OWN_VARIABLES = ["PREAMP_API_KEYS", "PREAMP_CONFIG", "PREAMP_HOME", "PREAMP_TRUST"];

/** Variables that are not settings of `preamp.yaml`, and that only `preamp serve` reads. */
const SERVE_VARIABLES = ["PREAMP_LOG_FORMAT", "PREAMP_NO_AUTH", "PREAMP_SECRET_KEY"];

const MIN_SECRET_CHARS = 32;

/** Returns the flag `--config` and the flags of settings in `short`. */
export function settingFlags(short: readonly string[] = []): Flag[] {
  const settings: Flag[] = [
    { name: "host", value: "ADDRESS", help: "address to listen on, default 127.0.0.1" },
    { name: "port", value: "PORT", help: "port to listen on, default 8484; 0 takes a free one" },
    {
      name: "plans",
      value: "FOLDER",
      many: true, // `deno task start` has one of its own
      help: "folder of named plans, default plans/ of a folder that you trust; the last one counts",
    },
    { name: "workspace", value: "FOLDER", help: "folder that ${WORKSPACE} in plans means, default this one" },
    {
      name: "model",
      short: "m",
      value: "PROVIDER/MODEL",
      help: "model of the demo agent, such as anthropic/claude-sonnet-5-5",
    },
    {
      name: "behind-proxy",
      value: "ADDRESSES",
      help: "reverse proxies whose Forwarded headers are trusted, such as 127.0.0.1,10.0.0.0/8",
    },
    {
      name: "store",
      value: "STORE",
      help: "memory, sqlite:PATH or postgres://…; default sqlite:~/.preamp/preamp.db",
    },
    { name: "frozen", help: "refuse modules by URL that neither the plan nor its lock pins" },
  ];
  return [
    {
      name: "config",
      short: "c",
      value: "FILE",
      help: `settings file, default ${SETTINGS_FILE} of a folder that you trust`,
    },
    ...settings.filter(({ name }) => short.includes(name)),
  ];
}

/**
 * Returns the flags of a command, `--config`, the flags of settings in `short`, and one for every other
 * setting of `preamp.yaml`, which `settingsHelp` describes.
 */
export function withSettings(own: readonly Flag[], short: readonly string[] = []): Flag[] {
  const flags = [...own, ...settingFlags(short)];
  const taken = new Set(flags.map(({ name }) => name));
  const others = OUTSIDE_SETTINGS.filter(({ path }) => !taken.has(path));
  return [...flags, ...others.map(({ path, form }) => ({ name: path, value: form.toUpperCase(), help: "" }))];
}

/** Returns the help text of all settings. */
export function settingsHelp(): string {
  const settings = OUTSIDE_SETTINGS.map((setting) => {
    const { path, meaning, default: value } = setting;
    const standard = Array.isArray(value) ? value.join(",") || '""' : String(value);
    return `  --${path} ${standard}\n        ${meaning} (${valuesOf(setting)})\n`;
  });
  return `Each setting of preamp.yaml is also a flag and a variable (PREAMP_LIMITS_MAX_COST_USD). A flag overrides a variable,
a variable overrides preamp.yaml. Lists are comma-separated. The settings with their defaults:

${settings.join("")}`;
}

/** Reads the settings of a command as {@link readSettings} does, and prints their warnings. */
export async function reportedSettings(args: Arguments, io: Io, use?: SettingsUse): Promise<Settings> {
  const settings = await readSettings(args, io, use);
  printIgnored(settings, io);
  for (const warning of settings.warnings) io.err.write(`${styleOf(io.err).yellow("warning:")} ${warning}\n`);
  return settings;
}

/** Prints which files of the folder are ignored. This is not a warning: the run is as without them. */
export function printIgnored(
  { folder: { ignored } }: Pick<Settings, "folder">,
  { err }: Pick<Io, "err">,
): void {
  if (ignored !== null) err.write(`${styleOf(err).yellow("note:")} ${ignored}\n`);
}

/** What a command uses besides the settings. */
export interface SettingsUse {
  /** Whether it is `preamp serve` or its like. Default false. */
  serves?: boolean;
  /** Whether it uses source overrides. Default false. */
  sources?: boolean;
  /** Whether it uses variables of `.env`. Default false. */
  variables?: boolean;
  /** Named plans that it uses. Default: none. */
  plans?: FolderUse["plans"];
  /** Whether it may ask a person at a terminal about the folder. Default true. */
  asks?: boolean;
}

/**
 * Reads the settings of a command.
 *
 * @throws {UsageError} for an invalid flag or variable, or a missing settings file.
 * @throws {DocumentFailure} for an invalid settings file.
 */
export async function readSettings(
  args: Arguments,
  io: Io,
  { serves = false, sources = false, variables: reads_variables = false, plans = null, asks = true }:
    SettingsUse = {},
): Promise<Settings> {
  const flags = readLayer(({ path }) => {
    const short = SHORT_FLAGS[path];
    if (short === undefined || args.has(path)) return [`--${path}`, args.value(path)];
    return [`--${short}`, args.value(short)];
  });
  const candidates = preampVariables(io);
  const variables = candidates?.length === 0 ? {} : readLayer(({ path, variable }) => {
    const short = SHORT_VARIABLES[path];
    const name = short && io.env(short) ? short : variable;
    return [name, io.env(name) || undefined];
  });
  const secret_key = io.env("PREAMP_SECRET_KEY") ?? "";
  if (secret_key !== "" && secret_key.length < MIN_SECRET_CHARS) {
    throw new UsageError(
      `Cannot use PREAMP_SECRET_KEY: it must have at least ${MIN_SECRET_CHARS} characters: try openssl rand -hex 32`,
    );
  }
  const named = args.value("config") ?? (io.env("PREAMP_CONFIG") || undefined);
  const names_plans = named !== undefined || Object.hasOwn(flags, "plans") ||
    Object.hasOwn(variables, "plans");
  const home = homeOf(io);
  const personal = home && new NamedPlans([personalPlans(home)]);
  const is_personal = plans !== null && plans !== "all" && await personal?.find(plans.name) != null;
  const folder = await openFolder(io, {
    settings: named === undefined,
    variables: reads_variables,
    sources,
    plans: names_plans || is_personal ? null : plans,
    asks,
  });
  const document = await readConfig(named, folder, io);
  const of_file = await parseVariables(folder.variables ?? "");
  const policy = policyFromData(mergeAll([
    withInlineUrls(document.data, document.base),
    withInlineUrls(variables, io.cwd),
    withInlineUrls(flags, io.cwd),
  ]));
  const api_keys = commaSeparated(io.env("PREAMP_API_KEYS") ?? "");
  const known = new Set(policy.auth.keys.map(({ sha256 }) => sha256));
  policy.auth.keys.push(...entriesOfKeys(api_keys).filter(({ sha256 }) => !known.has(sha256)));
  if (args.has("frozen")) policy.modules.frozen = true;
  const { retention } = document.data;
  const renamed = isObject(retention) && Object.hasOwn(retention, "log_days") ||
    Boolean(io.env("PREAMP_RETENTION_LOG_DAYS"));
  const baseOf = (key: string) =>
    Object.hasOwn(flags, key) || Object.hasOwn(variables, key) ? io.cwd : document.base;
  const named_plans = { url: locate(`${policy.plans.replace(/\/+$/, "")}/`, baseOf("plans")) };
  const plan_folders = [
    ...plans !== null && names_plans ? [named_plans] : [],
    ...home ? [personalPlans(home)] : [],
    ...folder.plans ? [folder.plans] : [],
  ];
  return {
    policy,
    plans: plans === null ? null : names_plans ? named_plans : folder.plans,
    plan_folders,
    all_plans: new NamedPlans(plan_folders),
    workspace: await workspaceOf(policy.workspace, baseOf("workspace")),
    store: storeOf(policy.store, baseOf("store")),
    home,
    sources: sources ? [...folder.sources ? [folder.sources] : [], ...userSources(io)] : [],
    api_keys,
    env: (name) => io.env(name) ?? of_file.variables.get(name),
    folder,
    warnings: [
      ...of_file.refused.map((name) =>
        `The variable ${name} of ${VARIABLES_FILE} is ignored: set it in the shell`
      ),
      ...candidates ? unknownVariables(candidates, serves) : [SOME_UNREADABLE],
      ...renamed
        ? ["The setting retention.log_days is called retention.days now, and covers all content"]
        : [],
    ],
  };
}

/** Returns settings whose folders in `modules.inline` are URLs, those of `policies` included. */
function withInlineUrls(data: JsonObject, base: URL): JsonObject {
  const result = { ...data };
  if (isObject(data.modules) && Array.isArray(data.modules.inline)) {
    const inline = data.modules.inline.map((entry) => isFolderPath(entry) ? locate(entry, base).href : entry);
    result.modules = { ...data.modules, inline };
  }
  if (isObject(data.policies)) {
    const policies = Object.entries(data.policies);
    result.policies = Object.fromEntries(
      policies.map(([name, one]) => [name, isObject(one) ? withInlineUrls(one, base) : one]),
    );
  }
  return result;
}

/** Returns the folder of the setting `workspace`; null if it is empty. */
async function workspaceOf(setting: string, base: URL): Promise<URL | null> {
  if (setting === "") return null;
  const url = locate(`${setting.replace(/\/+$/, "")}/`, base);
  const found = await Deno.stat(url).catch(() => null);
  if (found?.isDirectory) return url;
  throw new UsageError(`Cannot use workspace ${JSON.stringify(setting)}: there is no such folder`);
}

/** Returns the store that a valid setting names. */
function storeOf(setting: string, base: URL): Settings["store"] {
  if (setting === "auto" || setting === "memory") return setting;
  const name = parseStoreName(setting);
  if (name === null) throw new UsageError("Cannot use the setting store: its URL is not valid"); // may have a password
  return name.kind === "sqlite" ? { ...name, path: filePath(locate(name.path, base)) } : name;
}

/**
 * Returns the settings of all flags, or of all variables; `read` returns the name and the text of one. They
 * are checked apart from the file, so that an error names the flag or variable.
 */
function readLayer(read: (setting: OutsideSetting) => [name: string, text: string | undefined]): JsonObject {
  const names = new Map<string, string>();
  const data = settingsToData((setting) => {
    const [name, text] = read(setting);
    if (text !== undefined) names.set(setting.path, name);
    return text;
  });
  if (names.size === 0) return data;
  try {
    policyFromData(data);
  } catch (error) {
    if (!hasCode(error, "plan_invalid")) throw error;
    const { details } = error as PreampError; // identified by its code
    const lines = details.map(({ path, message, hint }) => {
      const [section = "", key] = path.split(/[.[]/);
      const name = names.get(`${section}.${key}`) ?? names.get(section) ?? section;
      return `Cannot use ${name}: ${message}${hint === undefined ? "" : ` (${hint})`}`;
    });
    throw new UsageError(lines.join("\n"), { cause: error });
  }
  return data;
}

/** Reads the settings file that was named, or that of the folder if it is used. */
async function readConfig(
  named: string | undefined,
  { settings }: UsedFolder,
  io: Io,
): Promise<{ data: JsonObject; base: URL }> {
  if (named === undefined) {
    return settings
      ? await parseConfig(settings.text, SETTINGS_FILE, settings.url)
      : { data: {}, base: io.cwd };
  }
  const url = locate(named, io.cwd);
  const text = await readOptional(url, named);
  if (text !== undefined) return await parseConfig(text, named, url);
  throw new UsageError(`Cannot read the settings file ${JSON.stringify(named)}: there is no such file`);
}

async function parseConfig(text: string, file: string, base: URL): Promise<{ data: JsonObject; base: URL }> {
  const [{ parseDocument }, { DocumentFailure }] = await Promise.all([
    import("../plan/parse/parse.ts"),
    import("./errors.ts"),
  ]);
  try {
    const what = `the settings file "${file}"`;
    const { data, locate } = await parseDocument(text, { label: what });
    policyFromData(data, { label: what, locate });
    return { data, base };
  } catch (error) {
    throw new DocumentFailure(file, error);
  }
}

/**
 * Returns the variables that begin with `PREAMP_`, in any case because Windows ignores case; null if this
 * process may not list its variables.
 */
function preampVariables(io: Io): string[] | null {
  const names = io.variables();
  return names &&
    names.filter((name) => name.toUpperCase().startsWith("PREAMP_") && !OWN_VARIABLES.includes(name));
}

const SOME_UNREADABLE =
  "This process may not list its variables: settings in variables that --allow-env does not name are ignored";

function unknownVariables(names: readonly string[], serves: boolean): string[] {
  const known = [
    ...OWN_VARIABLES,
    ...serves ? SERVE_VARIABLES : [],
    ...OUTSIDE_SETTINGS.map(({ variable }) => variable),
    ...Object.values(SHORT_VARIABLES),
  ];
  const otherwise = "there is no such setting; preamp help serve lists all settings";
  const unknown = names.filter((name) => name.startsWith("PREAMP_") && !known.includes(name));
  return unknown.map((name) => {
    const advice = SERVE_VARIABLES.includes(name)
      ? "only preamp serve reads it"
      : adviceFor(name, known, otherwise);
    return `The variable ${name} is ignored: ${advice}`;
  });
}

/** The store of a command. */
export interface OpenedStore {
  /** Undefined: memory. */
  readonly store: Store | undefined;
  /** Reason why runs are kept in memory although they should last; null if they are where they should be. */
  readonly warning: string | null;
}

/**
 * Opens the store of the settings. `auto` is the file `preamp.db` in `$PREAMP_HOME` when `lasting`, else
 * memory; where this process may not write that file it is memory too, with a warning.
 *
 * @param check Whether to refuse a damaged store, which is read for that.
 * @throws {UsageError} when a store that the settings name cannot be opened, or the default file is damaged.
 */
export async function openSettingsStore(
  settings: Settings,
  lasting: boolean,
  check = false,
): Promise<OpenedStore> {
  const { store } = settings;
  if (store === "memory" || store === "auto" && !lasting) return { store: undefined, warning: null };
  if (store === "auto" && settings.home === null) return inMemory("there is no home folder");
  const name = lastingStore(settings);
  try {
    return { store: await openStore(name, { check, ...settings.policy.postgres }), warning: null };
  } catch (error) {
    if (store === "auto" && isRefused(error)) return inMemory(errorMessage(error));
    throw storeFailure(
      name,
      error,
      "; choose another place with --store, or --store memory to keep nothing",
    );
  }
}

/**
 * Returns whether this process may not write a file: no permission, or a file system that is mounted
 * read-only.
 */
function isRefused(error: unknown): boolean {
  const { NotCapable, PermissionDenied } = Deno.errors;
  return error instanceof NotCapable || error instanceof PermissionDenied ||
    isObject(error) && error.code === "EROFS";
}

/** Returns the lasting store of the settings. @throws {UsageError} for memory, and without a home folder. */
export function lastingStore({ store, home }: Settings): StoreName {
  if (store !== "auto" && store !== "memory") return store;
  if (store === "auto" && home !== null) {
    return { kind: "sqlite", path: filePath(new URL("preamp.db", home)) };
  }
  throw new UsageError(
    "Cannot find the store: name one with --store, such as sqlite:preamp.db or postgres://HOST/DATABASE",
  );
}

/**
 * Returns the error for a store that cannot be used, with the reason and without a password. `advice`: what
 * to do, for commands that can run with another store.
 */
export function storeFailure(name: StoreName, error: unknown, advice = ""): UsageError {
  const message = `Cannot use the store ${describeStore(name)}: ${errorMessage(error)}`;
  return new UsageError(`${message}${advice}`, { cause: error });
}

function inMemory(reason: string): OpenedStore {
  const fact = `Runs are kept in memory and end with this process: ${reason}`;
  return { store: undefined, warning: `${fact}. Set store to choose another place.` };
}
