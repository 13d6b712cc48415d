/** The settings of a command: flags, their help, and what it uses of the folder in which it starts. */
import { OUTSIDE_SETTINGS, valuesOf } from "../policy/settings.ts";
import {
  readSettings as read,
  type Settings as AllSettings,
  type SettingsUse as UseOfAll,
} from "../settings/settings.ts";
import type { Arguments, Flag } from "./arguments.ts";
import { writeLabelled } from "./terminal/format.ts";
import { parseVariables } from "./folder/env_file.ts";
import { openFolder, type UsedFolder } from "./folder/folder.ts";
import { SETTINGS_FILE, VARIABLES_FILE } from "./folder/folder_files.ts";
import { userSources } from "./source_files.ts";
import type { Io } from "./terminal/io.ts";

/** The settings of a command. */
export interface Settings extends AllSettings {
  /** What is used of the folder in which the command is started. */
  folder: Pick<UsedFolder, "names">;
}

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
      name: "base-path",
      value: "PATH",
      help: "path before that of each URL, which a reverse proxy passes on, such as /agents",
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
  for (const warning of settings.warnings) writeLabelled(io.err, "warning", warning);
  return settings;
}

/** Prints which files of the folder are ignored. This is not a warning: the run is as without them. */
export function printIgnored(
  { ignored }: Pick<Settings, "ignored">,
  { err }: Pick<Io, "err">,
): void {
  if (ignored !== null) writeLabelled(err, "note", ignored);
}

/** What a command uses besides the settings. */
export interface SettingsUse extends UseOfAll {
  /** Whether it uses source overrides. Default false. */
  sources?: boolean;
  /** Whether it uses variables of `.env`. Default false. */
  variables?: boolean;
  /** Whether it may ask a person at a terminal about the folder. Default true. */
  asks?: boolean;
}

/** Reads the settings of a command as `readSettings` of src/settings does. */
export async function readSettings(
  args: Arguments,
  io: Io,
  { sources = false, variables = false, asks = true, ...use }: SettingsUse = {},
): Promise<Settings> {
  let folder: UsedFolder | undefined;
  const settings = await read({
    cwd: io.cwd,
    env: io.env,
    variables: io.variables,
    flags: args,
    async openFolder(wanted) {
      folder = await openFolder(io, { ...wanted, variables, sources, asks });
      const of_file = await parseVariables(folder.variables ?? "");
      return {
        settings: folder.settings && { ...folder.settings, name: SETTINGS_FILE },
        variables: of_file.variables,
        plans: folder.plans,
        sources: sources ? [...folder.sources ? [folder.sources] : [], ...userSources(io)] : [],
        warnings: of_file.refused.map((name) =>
          `The variable ${name} of ${VARIABLES_FILE} is ignored: set it in the shell`
        ),
        ignored: folder.ignored,
      };
    },
  }, use);
  return { ...settings, folder: folder! }; // the settings are never read without it
}
