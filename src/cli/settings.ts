/**
 * The policy of this process: flag over variable over `preamp.yaml` over default (trust.md; http.md, Running). Every error
 * names where the value was given.
 */
import { mergePlans } from "../plan/merge.ts";
import { didYouMean } from "../text/did_you_mean.ts";
import { entriesOfKeys } from "../policy/api_keys.ts";
import { policyFromData } from "../policy/parse_policy.ts";
import type { Policy } from "../policy/policy.ts";
import {
  type OutsideSetting,
  policySettings,
  type Setting,
  settingsToData,
  valuesOf,
} from "../policy/policy_settings.ts";
import { hasCode, type PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { SourcesFile } from "../app/source_overrides.ts";
import type { Arguments, Flag } from "./arguments.ts";
import { locate, readOptional } from "./files.ts";
import { homeOf, sourceFilesOf } from "./home.ts";
import type { Io } from "./terminal/io.ts";
import { UsageError } from "./usage_error.ts";

/** What a command is set to. */
export interface Settings {
  policy: Policy;
  /** Folder of named plans, ending in a slash. */
  plans: URL;
  /** `$PREAMP_HOME`, else `~/.preamp`, ending in a slash; null where there is no home folder. */
  home: URL | null;
  /** Files of overrides of sources; the first one that has a module wins. */
  sources: readonly SourcesFile[];
  /** The keys of `PREAMP_API_KEYS`: never to be shown. */
  api_keys: readonly string[];
  /** Variables that begin like ours and are not: said, so that a typo does not drop a protection. */
  warnings: readonly string[];
}

/** Short flags of http.md → the keys they stand for. */
const ALIASES: Readonly<Record<string, string>> = { host: "listen.host", port: "listen.port" };

/** Variables that are no setting of `preamp.yaml`. The first is read by clients: examples of requests use it. */
const OWN_VARIABLES = [
  "PREAMP_API_KEY",
  "PREAMP_API_KEYS",
  "PREAMP_CONFIG",
  "PREAMP_HOME",
  "PREAMP_LOG_FORMAT",
  "PREAMP_NO_AUTH",
];

/** The settings file of a folder. */
export const DEFAULT_CONFIG = "preamp.yaml";

/** Returns the flags that set the policy: `--config`, and one for each key that may be set from outside. */
export function settingFlags(short: readonly string[] = []): Flag[] {
  const shown: Flag[] = [
    { name: "host", value: "ADDRESS", help: "address to listen on, default 127.0.0.1" },
    { name: "port", value: "PORT", help: "port to listen on, default 8484; 0 takes a free one" },
    { name: "plans", value: "FOLDER", help: "folder of named plans, default plans/" },
    { name: "store", value: "STORE", help: "where runs are kept, default memory" },
    { name: "frozen", help: "load no module by URL that neither plan nor lock pins" },
  ];
  return [
    {
      name: "config",
      short: "c",
      value: "FILE",
      help: `policy file, default ${DEFAULT_CONFIG} when it is there`,
    },
    ...shown.filter(({ name }) => short.includes(name)),
  ];
}

/** Returns a flag for every key of `preamp.yaml`, for the parser; `help` shows them as a table of their own. */
export function policyFlags(taken: readonly Flag[]): Flag[] {
  const names = new Set(taken.map(({ name }) => name));
  return policySettings().filter(({ path }) => !names.has(path))
    .map(({ path, form }) => ({ name: path, value: form.toUpperCase(), help: "" }));
}

/** Returns the settings as the help shows them. */
export function settingsHelp(): string {
  const settings = policySettings().map((setting) => {
    const { path, meaning } = setting;
    return `  --${path} ${shownDefault(setting)}\n        ${meaning} (${valuesOf(setting)})\n`;
  });
  return `Each setting of preamp.yaml is a flag, and a variable too (PREAMP_LIMITS_MAX_COST_USD); a flag goes over a
variable, a variable over preamp.yaml. Lists are comma-separated. With their defaults:

${settings.join("")}`;
}

function shownDefault({ default: value }: Setting): string {
  return Array.isArray(value) ? value.join(",") || '""' : String(value);
}

/**
 * Reads the settings of a command.
 *
 * @throws {UsageError} for a flag or variable that cannot be used, a config file that is not there.
 * @throws {DocumentFailure} for a config file that cannot be read as one.
 */
export async function readSettings(args: Arguments, io: Io): Promise<Settings> {
  const reading = readConfig(args, io);
  reading.catch(() => {}); // told below, unless a flag or a variable is wrong too
  const flags = settingsToData(({ path }) => args.value(path) ?? args.value(aliasOf(path)));
  const ours = ourVariables(io);
  const variables = ours.length > 0 ? settingsToData((setting) => variableOf(setting, io)) : {};
  checkGiven(flags, (path) => `--${aliasGiven(args, path) ?? path}`);
  checkGiven(variables, (path) => variableGiven(path, io));
  const document = await reading;
  const data = mergePlans(mergePlans(document.data, variables), flags);
  const policy = policyFromData(data);
  const api_keys = (io.env("PREAMP_API_KEYS") ?? "").split(",").map((key) => key.trim()).filter((key) =>
    key !== ""
  );
  const known = new Set(policy.auth.keys.map(({ sha256 }) => sha256));
  policy.auth.keys.push(...entriesOfKeys(api_keys.join(",")).filter(({ sha256 }) => !known.has(sha256)));
  if (args.has("frozen")) policy.modules.frozen = true;
  const from = Object.hasOwn(flags, "plans") || Object.hasOwn(variables, "plans") ? io.cwd : document.base;
  return {
    policy,
    plans: locate(`${policy.plans.replace(/\/+$/, "")}/`, from),
    home: homeOf(io),
    sources: Object.values(sourceFilesOf(io)).filter((file) => file !== undefined),
    api_keys,
    warnings: suspects(ours),
  };
}

function aliasOf(path: string): string {
  return Object.keys(ALIASES).find((alias) => ALIASES[alias] === path) ?? path;
}

function aliasGiven(args: Arguments, path: string): string | undefined {
  return args.has(path) ? undefined : args.has(aliasOf(path)) ? aliasOf(path) : undefined;
}

/** `PREAMP_PORT` or `PREAMP_LISTEN_PORT`; an empty variable is none. */
function variableOf(setting: OutsideSetting, io: Io): string | undefined {
  return io.env(shortVariable(setting.path)) || io.env(setting.variable) || undefined;
}

function shortVariable(path: string): string {
  return `PREAMP_${aliasOf(path).replaceAll(".", "_").toUpperCase()}`;
}

function variableGiven(path: string, io: Io): string {
  const setting = policySettings().find((one) => one.path === path);
  return io.env(shortVariable(path)) ? shortVariable(path) : setting?.variable ?? path;
}

/** Checks values by themselves, so that an error names the flag or variable and no file. */
function checkGiven(data: JsonObject, nameOf: (path: string) => string): void {
  if (Object.keys(data).length === 0) return;
  try {
    policyFromData(data);
  } catch (error) {
    if (!hasCode(error, "plan_invalid")) throw error;
    const { details } = error as PreampError; // told by its code
    const lines = details.map(({ path, message, hint }) => {
      const [section, key] = path.split(/[.[]/);
      const setting = key !== undefined && isObject(data[section ?? ""])
        ? `${section}.${key}`
        : section ?? "";
      return `Cannot use ${nameOf(setting)}: ${message}${hint === undefined ? "" : ` (${hint})`}`;
    });
    throw new UsageError(lines.join("\n"), { cause: error });
  }
}

async function readConfig(args: Arguments, io: Io): Promise<{ data: JsonObject; base: URL }> {
  const named = args.value("config") ?? (io.env("PREAMP_CONFIG") || undefined);
  const file = named ?? DEFAULT_CONFIG;
  const url = locate(file, io.cwd);
  const text = await readOptional(url, file);
  if (text === undefined) {
    if (named === undefined) return { data: {}, base: io.cwd };
    throw new UsageError(`Cannot read the policy ${JSON.stringify(file)}: there is no such file`);
  }
  const [{ parseDocument }, { DocumentFailure }] = await Promise.all([
    import("../plan/parse/parse.ts"),
    import("./errors.ts"),
  ]);
  try {
    const what = `the policy "${file}"`;
    const { data, locate } = await parseDocument(text, { what });
    policyFromData(data, { what, locate });
    return { data, base: url };
  } catch (error) {
    throw new DocumentFailure(file, error);
  }
}

/** Variables that may set a key: named like ours, in any case because Windows takes them so. */
function ourVariables(io: Io): string[] {
  return io.variables().filter((name) =>
    name.toUpperCase().startsWith("PREAMP_") && !OWN_VARIABLES.includes(name)
  );
}

function suspects(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const known = [
    ...OWN_VARIABLES,
    ...policySettings().flatMap(({ path, variable }) => [variable, shortVariable(path)]),
  ];
  const warnings: string[] = [];
  for (const name of names) {
    if (!name.startsWith("PREAMP_") || known.includes(name)) continue;
    const meant = didYouMean(name, known);
    const advice = meant === undefined
      ? "Preamp has no such setting; preamp help serve lists all"
      : `did you mean ${meant}?`;
    warnings.push(`The variable ${name} is not used: ${advice}`);
  }
  return warnings;
}
