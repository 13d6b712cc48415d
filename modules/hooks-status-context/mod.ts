/** `hooks-status-context`: shows the model the time, the folder and the git branch in each request. */
import { FileAccess, FileError } from "../files/access.ts";
import {
  type Coordinator,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  readConfig,
} from "preamp/base";

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    root: {
      type: "string",
      format: "path",
      minLength: 1,
      description: "The folder; default: the first readable folder",
    },
    include_datetime: { type: "boolean", default: true, description: "State date, time and time zone" },
    include_git: {
      type: "boolean",
      default: true,
      description: "State the branch of the folder's repository",
    },
    priority: { type: "integer", default: 0, description: "Order among hooks; lower runs first" },
  },
};

export const module: ModuleInfo = {
  id: "hooks-status-context",
  type: "hook",
  version: "1.0.0",
  description: "Shows the model the time, the folder and the git branch in each request.",
  config_schema: CONFIG_SCHEMA,
  permissions: { read: ["${WORKSPACE}"] },
};

interface StatusSettings {
  root?: string;
  include_datetime: boolean;
  include_git: boolean;
  priority: number;
}

/** Bytes of `.git` files: a branch name is far shorter. */
const MAX_GIT_BYTES = 4_096;

/**
 * Registers a handler that adds the status at the end of each request. It is not stored, so the history and
 * the cached prefix of requests stay as they are.
 *
 * @throws {PreampError} `module_invalid` when the config does not fit the schema.
 */
// deno-lint-ignore require-await -- the contract: mount returns a promise
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const settings = readConfig<StatusSettings>(CONFIG_SCHEMA, config);
  const files = new FileAccess(coordinator.permissions, settings.root);

  async function status(): Promise<string> {
    const lines: string[] = [];
    if (settings.include_datetime) lines.push(`Time: ${timeOf(coordinator.clock.now())}`);
    if (files.root !== null) lines.push(`Folder: ${files.root}`);
    const branch = settings.include_git && files.root !== null ? await branchOf(files, files.root) : null;
    if (branch !== null) lines.push(`Git: ${branch}`);
    return lines.length === 0 ? "" : `<status>\n${lines.join("\n")}\n</status>`;
  }

  coordinator.hooks.register("provider:request", async () => {
    const text = await status();
    if (text === "") return null;
    return {
      action: "inject_context",
      context_injection: text,
      context_injection_role: "user",
      ephemeral: true,
      append_to_last_tool_result: true,
    };
    // a status that cannot be read must not deny the request
  }, { priority: settings.priority, name: module.id, fail_closed: false });
}

/** Returns a time with weekday, offset and zone: `Saturday 2026-11-28 10:05 +01:00 (Europe/Paris)`. */
function timeOf(milliseconds: number): string {
  const date = new Date(milliseconds);
  const offset = -date.getTimezoneOffset();
  const local = new Date(milliseconds + offset * 60_000).toISOString();
  const weekday = new Intl.DateTimeFormat("en", { weekday: "long" }).format(date);
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60]
    .map((count) => String(count).padStart(2, "0"));
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return `${weekday} ${local.slice(0, 10)} ${local.slice(11, 16)} ${
    offset < 0 ? "-" : "+"
  }${hours}:${minutes} (${timeZone})`;
}

/**
 * Returns the branch of a folder's repository, or the commit of a detached HEAD; null where there is no
 * repository, or where its files are outside of the grant. Reads `HEAD`; runs no program.
 */
async function branchOf(files: FileAccess, folder: string): Promise<string | null> {
  const git = `${folder}/.git`;
  // in a work tree, .git is a file that names the folder
  const link = /^gitdir: (.+)$/m.exec(await textOf(files, git) ?? "")?.[1];
  const head = (await textOf(files, `${link ?? git}/HEAD`))?.trim();
  if (!head) return null;
  const branch = /^ref: refs\/heads\/(.+)$/.exec(head)?.[1];
  return branch === undefined ? `commit ${head.slice(0, 12)}` : `branch ${branch}`;
}

async function textOf(files: FileAccess, path: string): Promise<string | null> {
  try {
    return new TextDecoder().decode((await files.read(path, MAX_GIT_BYTES)).bytes);
  } catch (error) {
    if (error instanceof FileError) return null;
    throw error;
  }
}
