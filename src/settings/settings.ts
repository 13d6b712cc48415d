/**
 * Reads the settings of this program, and opens the store that they name. A flag overrides a variable, a
 * variable overrides `preamp.yaml`, and that overrides the default (src/docs/operating.md#settings). Every
 * error names the flag, variable or file of the value. The caller decides what is used of a folder.
 */
import { mergeAll } from "../plan/merge.ts";
import { entriesOfKeys } from "../policy/api_keys.ts";
import { policyFromData } from "../policy/parse_policy.ts";
import type { Policy } from "../policy/policy.ts";
import { commaSeparated, OUTSIDE_SETTINGS, type OutsideSetting, settingsToData } from "../policy/settings.ts";
import { errorMessage, hasCode, type PreampError } from "../sdk/errors.ts";
import { didYouMean } from "../sdk/findings.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describeStore, openStore, parseStoreName, type StoreName } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { NamedPlans, personalPlans, type PlanFolder } from "../app/named_plans.ts";
import type { SourcesFile } from "../app/source_overrides.ts";
import { DocumentFailure, UsageError } from "./errors.ts";
import { type Environment, filePath, homeOf, locate, readOptional } from "./paths.ts";

/** The settings of a command or a server. */
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
  /**
   * Warnings about variables that begin with `PREAMP_` and mean nothing to the command, or that may not be
   * read, so that neither disables a limit unnoticed.
   */
  warnings: readonly string[];
  /** One line that names the files of the folder that are ignored; null: none is. */
  ignored: string | null;
}

/** Flags of a command line. */
export interface GivenFlags {
  has(name: string): boolean;
  value(name: string): string | undefined;
}

/** Where settings are read from. */
export interface SettingsInput extends Environment {
  /** Returns the names of the variables that are set; null if this process may not list them. */
  variables(): string[] | null;
  /** Absent: none. */
  readonly flags?: GivenFlags;
  /** Resolves to what is used of the folder. */
  openFolder(use: FolderUse): Promise<FolderSettings>;
}

/** What the settings would use of the folder. */
export interface FolderUse {
  /** Whether no other settings file was named. */
  readonly settings: boolean;
  /** All plans, the one of a name, or none. */
  readonly plans: "all" | { readonly name: string } | null;
}

/** What is used of the folder. */
export interface FolderSettings {
  /** The settings file, with its name in messages; null: it is not used. */
  readonly settings: { readonly name: string; readonly text: string; readonly url: URL } | null;
  /** Variables of the folder, for keys, addresses and `${VAR}`. */
  readonly variables: ReadonlyMap<string, string>;
  readonly plans: PlanFolder | null;
  /** Files of source overrides. */
  readonly sources: readonly SourcesFile[];
  readonly warnings: readonly string[];
  /** One line that names the files that are ignored; null: none is. */
  readonly ignored: string | null;
}

/** Setting → short name of its flag. */
const SHORT_FLAGS: Readonly<Record<string, string>> = {
  "listen.host": "host",
  "listen.port": "port",
  "listen.trusted_proxies": "behind-proxy",
  "listen.base_path": "base-path",
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

/**
 * Setting → variable of a platform that chooses the address, such as Cloud Run. Only servers read them, and
 * `HOST` only where there is a `PORT`: some shells set it to the name of the machine.
 */
const HOST_VARIABLES: Readonly<Record<string, string>> = { "listen.host": "HOST", "listen.port": "PORT" };

/** What is used besides the settings. */
export interface SettingsUse {
  /** Whether it is `preamp serve` or its like. Default false. */
  serves?: boolean;
  /** Named plans that are used. Default: none. */
  plans?: FolderUse["plans"];
}

/**
 * Reads the settings.
 *
 * @throws {UsageError} for an invalid flag or variable, or a missing settings file.
 * @throws {DocumentFailure} for an invalid settings file.
 */
export async function readSettings(
  input: SettingsInput,
  { serves = false, plans = null }: SettingsUse = {},
): Promise<Settings> {
  const { flags: given } = input;
  const flags = given === undefined ? {} : readLayer(({ path }) => {
    const short = SHORT_FLAGS[path];
    if (short === undefined || given.has(path)) return [`--${path}`, given.value(path)];
    return [`--${short}`, given.value(short)];
  });
  const candidates = preampVariables(input);
  const has_port = serves && Boolean(input.env("PORT"));
  const variables = candidates?.length === 0 && !has_port ? {} : readLayer(({ path, variable }) => {
    const names = [SHORT_VARIABLES[path], variable, has_port ? HOST_VARIABLES[path] : undefined];
    const name = names.find((one) => one !== undefined && input.env(one)) ?? variable;
    return [name, input.env(name) || undefined];
  });
  const secret_key = input.env("PREAMP_SECRET_KEY") ?? "";
  if (secret_key !== "" && secret_key.length < MIN_SECRET_CHARS) {
    throw new UsageError(
      `Cannot use PREAMP_SECRET_KEY: it must have at least ${MIN_SECRET_CHARS} characters: try openssl rand -hex 32`,
    );
  }
  const named = given?.value("config") ?? (input.env("PREAMP_CONFIG") || undefined);
  const names_plans = named !== undefined || Object.hasOwn(flags, "plans") ||
    Object.hasOwn(variables, "plans");
  const home = homeOf(input);
  const personal = home && new NamedPlans([personalPlans(home)]);
  const is_personal = plans !== null && plans !== "all" && await personal?.find(plans.name) != null;
  const folder = await input.openFolder({
    settings: named === undefined,
    plans: names_plans || is_personal ? null : plans,
  });
  const document = await readConfig(named, folder, input);
  const policy = policyFromData(mergeAll([document.data, variables, flags]));
  const api_keys = commaSeparated(input.env("PREAMP_API_KEYS") ?? "");
  const known = new Set(policy.auth.keys.map(({ sha256 }) => sha256));
  policy.auth.keys.push(...entriesOfKeys(api_keys).filter(({ sha256 }) => !known.has(sha256)));
  if (given?.has("frozen")) policy.modules.frozen = true;
  const { retention } = document.data;
  const renamed = isObject(retention) && Object.hasOwn(retention, "log_days") ||
    Boolean(input.env("PREAMP_RETENTION_LOG_DAYS"));
  const baseOf = (key: string) =>
    Object.hasOwn(flags, key) || Object.hasOwn(variables, key) ? input.cwd : document.base;
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
    sources: folder.sources,
    api_keys,
    env: (name) => input.env(name) ?? folder.variables.get(name),
    warnings: [
      ...folder.warnings,
      ...candidates ? unknownVariables(candidates, serves) : [SOME_UNREADABLE],
      ...renamed
        ? ["The setting retention.log_days is called retention.days now, and covers all content"]
        : [],
    ],
    ignored: folder.ignored,
  };
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
  { settings }: FolderSettings,
  { cwd }: Environment,
): Promise<{ data: JsonObject; base: URL }> {
  if (named === undefined) {
    return settings ? await parseConfig(settings.text, settings.name, settings.url) : { data: {}, base: cwd };
  }
  const url = locate(named, cwd);
  const text = await readOptional(url, named);
  if (text !== undefined) return await parseConfig(text, named, url);
  throw new UsageError(`Cannot read the settings file ${JSON.stringify(named)}: there is no such file`);
}

async function parseConfig(text: string, file: string, base: URL): Promise<{ data: JsonObject; base: URL }> {
  const { parseDocument } = await import("../plan/parse/parse.ts");
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
function preampVariables(input: SettingsInput): string[] | null {
  const names = input.variables();
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
    const meant = didYouMean(name, known);
    const advice = SERVE_VARIABLES.includes(name)
      ? "only preamp serve reads it"
      : meant === undefined
      ? otherwise
      : `did you mean ${meant}?`;
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
