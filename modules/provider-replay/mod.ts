/**
 * `provider-replay`: a provider for tests. It returns the recorded answers of a run in order, or records another
 * provider's answers to a file and plays them when the file is there; without a model or key.
 */
import {
  type Coordinator,
  isAbsolutePath,
  isObject,
  isPathGranted,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  normalizePath,
  PreampError,
  type Provider,
  readConfig,
} from "preamp/base";
import { createProvider, playingProvider } from "./provider.ts";
import { beginRecording, openRecording, recordingProvider } from "./recorder.ts";
import { readAttempts, type ReplayConfig } from "./recording.ts";
import { Recording } from "./recording_file.ts";

const NAME = "replay";

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    record: {
      type: "string",
      minLength: 1,
      description: "File: played if it exists, else the provider's answers are recorded to it",
    },
    events: { type: "array", items: { type: "object" }, description: "Entries of a run's log" },
    recording: {
      type: "object",
      required: ["events"],
      description: "Output of preamp run --output-format json-trace: {run, events, …}",
    },
    session_id: { type: "string", description: "Session to replay; default: the run's session" },
    provider: {
      type: "string",
      description:
        "With record: name of the provider to record. Else: replays only its answers; default: all",
    },
    context_window: { type: "integer", minimum: 1, default: 100000 },
    max_output_tokens: { type: "integer", minimum: 1, default: 4096 },
  },
};

export const module: ModuleInfo = {
  id: "provider-replay",
  name: "Replay provider",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Records answers of a provider, and returns recorded ones; deterministic, needs no key",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Mounts the provider as `replay`.
 *
 * @throws {PreampError} `module_invalid` when the config has no recording, or the provider to record is not mounted;
 * `tool_permission_denied` when the plan does not grant access to the file.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const settings = readConfig<ReplayConfig>(CONFIG_SCHEMA, config);
  const provider = settings.record === undefined
    ? replay(coordinator, settings)
    : await recordOrPlay(coordinator, settings.record, settings);
  await coordinator.mount("providers", provider, { name: NAME });
}

function replay(coordinator: Coordinator, config: ReplayConfig): Provider {
  const attempts = readAttempts(config);
  if (attempts.length > 0) return createProvider(NAME, attempts, coordinator, config);
  throw new PreampError(
    "module_invalid",
    "Cannot mount provider-replay: the log in its config has no model answer",
  );
}

/** Returns a provider that plays the file; if it does not exist, one that records to it. */
async function recordOrPlay(
  coordinator: Coordinator,
  record: string,
  config: ReplayConfig,
): Promise<Provider> {
  const path = normalizePath(isAbsolutePath(record) ? record : `${Deno.cwd()}/${record}`);
  await requireGrant(coordinator, ["read", "write"], path, `read ${JSON.stringify(record)}`);
  const text = await readText(path);
  const known = text === null ? null : Recording.fromText(text, record);
  // sub-agents, and later runs of the session, continue the recording
  const is_recording = openRecording(path) !== undefined || wasRecording(coordinator);
  if (known !== null && !is_recording) return playingProvider(NAME, known, coordinator, record);
  await requireGrant(coordinator, ["write"], path, `record to ${JSON.stringify(record)}`);
  const inner = innerProvider(coordinator, config.provider, record);
  coordinator.session_state[STATE_KEY] = { recording: true };
  return recordingProvider(NAME, inner, coordinator, beginRecording(coordinator, path, known));
}

const STATE_KEY = "provider-replay";

function wasRecording({ session_state }: Coordinator): boolean {
  const state = session_state[STATE_KEY];
  return isObject(state) && state.recording === true;
}

/** Returns the provider to record. @throws {PreampError} `module_invalid` */
function innerProvider(coordinator: Coordinator, name: string | undefined, record: string): Provider {
  const mounted = Object.keys(coordinator.providers);
  const wanted = name ?? (mounted.length === 1 ? mounted[0] : undefined);
  const inner = wanted === undefined ? undefined : coordinator.providers[wanted];
  if (inner) return inner;
  const fact = wanted === undefined
    ? "config.provider must name the provider to record"
    : `the provider ${JSON.stringify(wanted)} is not mounted: put it before provider-replay, and set its key`;
  throw new PreampError("module_invalid", `Cannot record to ${JSON.stringify(record)}: ${fact}`);
}

/** Resolves to the text of a file; null if it does not exist. */
async function readText(path: string): Promise<string | null> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/**
 * Checks that the plan's entries of this module grant one of the permissions for a file. A built-in module runs inline,
 * without a sandbox, so it enforces the permissions of its own plan entry (src/docs/security.md#permissions).
 *
 * @throws {PreampError} `tool_permission_denied`
 */
async function requireGrant(
  { config }: Coordinator,
  permissions: readonly ["read", "write"] | readonly ["write"],
  file: string,
  action: string,
): Promise<void> {
  for (const spec of Array.isArray(config.providers) ? config.providers : []) {
    if (!isObject(spec) || spec.module !== module.id || !isObject(spec.permissions)) continue;
    for (const permission of permissions) {
      if (await isPathGranted(spec.permissions[permission], file, Deno.realPath)) return;
    }
  }
  const [wanted] = permissions;
  throw new PreampError(
    "tool_permission_denied",
    `Cannot ${action}: the plan's entry of provider-replay must have permissions: ` +
      `{ ${wanted}: true }, or ${wanted} with the absolute path of its folder`,
  );
}
