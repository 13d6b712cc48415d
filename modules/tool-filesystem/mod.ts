/** `tool-filesystem`: lets the model read, find and change files inside of the plan's grant. */
import { FileAccess } from "../files/access.ts";
import { editTool, writeTool } from "./edit.ts";
import { globTool, listTool } from "./list.ts";
import { KnownFiles } from "./known_files.ts";
import { applyPatchTool } from "./patch.ts";
import { readTool } from "./read.ts";
import { ChangeQueue, type FileSettings, type Writing } from "./shared.ts";
import {
  type Coordinator,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  PreampError,
  type Provider,
  readConfig,
  type Tool,
} from "preamp/base";

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    root: {
      type: "string",
      format: "path",
      minLength: 1,
      description: "Folder that the model's relative paths start at; default: the first readable folder",
    },
    dialect: {
      type: "string",
      enum: ["auto", "plain", "patch"],
      default: "auto",
      description: "plain: edit and write; patch: apply_patch; auto: what the model was trained with",
    },
    max_read_lines: { type: "integer", minimum: 1, default: 2000, description: "Lines of one read" },
    max_read_bytes: { type: "integer", minimum: 1024, default: 51_200, description: "Bytes of one read" },
    max_line_chars: {
      type: "integer",
      minimum: 10,
      default: 2000,
      description: "Characters of a line that are shown",
    },
  },
};

export const module: ModuleInfo = {
  id: "tool-filesystem",
  type: "tool",
  version: "1.0.0",
  description: "Reads, finds and changes files inside of the folders that the plan grants.",
  config_schema: CONFIG_SCHEMA,
  permissions: { read: ["${WORKSPACE}"], write: ["${WORKSPACE}"] },
};

/**
 * Mounts `read`, `list` and `glob`, and with `permissions.write` also `edit` and `write`, or `apply_patch`.
 *
 * @throws {PreampError} `module_invalid` when the plan grants no `read`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const settings = readConfig<FileSettings>(CONFIG_SCHEMA, config);
  const { permissions } = coordinator;
  if (isNothing(permissions.read)) {
    throw new PreampError(
      "module_invalid",
      `Cannot mount ${module.id}: the plan grants it no files: give its entry permissions such as ` +
        "{ read: [${WORKSPACE}], write: [${WORKSPACE}] }",
    );
  }
  const access = new FileAccess(permissions, settings.root);
  const known = new KnownFiles(coordinator);
  const tools = [readTool(access, settings, known, coordinator), listTool(access), globTool(access)];
  if (!isNothing(permissions.write)) {
    tools.push(...writingTools({ coordinator, access, known, queue: new ChangeQueue() }, settings));
  }
  for (const tool of tools) await coordinator.mount("tools", tool, tool.name);
  // for rules of approvals: as the model may name it, and absolute
  coordinator.registerCapability("tool-filesystem.real_path", async (path: unknown) => {
    const real = await access.realPath(String(path));
    return [access.display(real), real];
  });
  return { name: module.id, version: module.version, provides: tools.map(({ name }) => name) };
}

function isNothing(grant: boolean | readonly string[]): boolean {
  return grant === false || Array.isArray(grant) && grant.length === 0;
}

function writingTools(writing: Writing, { dialect }: FileSettings): Tool[] {
  const patches = dialect === "patch" ||
    dialect === "auto" && isTrainedOnPatches(writing.coordinator.providers);
  return patches ? [applyPatchTool(writing)] : [editTool(writing), writeTool(writing)];
}

/** Returns whether the model of the first provider knows `apply_patch`. */
function isTrainedOnPatches(providers: Readonly<Record<string, Provider>>): boolean {
  const [provider] = Object.values(providers).sort((a, b) => (a.priority ?? 100) - (b.priority ?? 100));
  // a method that providers of this SDK have, beside the contract
  const info = (provider as { getModelInfo?: () => { id?: unknown } } | undefined)?.getModelInfo?.();
  const model = info?.id ?? provider?.getInfo().defaults.model;
  return typeof model === "string" && /\bgpt-(?:[5-9]|\d\d)|\bcodex\b/.test(model);
}
