/**
 * `provider-replay`: a provider for tests. It returns the recorded answers of a run in order, or records
 * another provider's answers to a file and plays them when the file is there; without a model or key.
 */
import {
  type ChatResponse,
  type CompleteOptions,
  type Coordinator,
  isAbsolutePath,
  isPathGranted,
  type JsonObject,
  type JsonSchema,
  LLMError,
  type LLMErrorType,
  type ModuleInfo,
  normalizePath,
  PreampError,
  type Provider,
  ProviderInfo,
  readConfig,
  toChatResponse,
} from "preamp/base";
import { beginRecording, openRecording, recordingProvider, redactorOf } from "./recorder.ts";
import { NAME, type Outcome, readOutcomes, Recording, type ReplayConfig, shapeOf } from "./recording.ts";

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    record: {
      type: "string",
      format: "path",
      minLength: 1,
      description: "File: played if it exists, else the provider's answers are recorded to it",
    },
    events: { type: "array", items: { type: "object" }, description: "Entries of a run's log" },
    recording: {
      type: "object",
      required: ["events"],
      description: "Output of preamp run --output-format json-trace: {run, events, …}",
    },
    provider: {
      type: "string",
      description:
        "With record: name of the provider to record. Else: replays only its answers; default: all",
    },
  },
};

export const module: ModuleInfo = {
  id: "provider-replay",
  name: "Replay provider",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Records answers of a provider, and returns recorded ones; deterministic, needs no key.",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Mounts the provider as `replay`.
 *
 * @throws {PreampError} `module_invalid` when the config has no recording, or the provider to record is not
 * mounted; `tool_permission_denied` when the plan does not grant access to the file.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const settings = readConfig<ReplayConfig>(CONFIG_SCHEMA, config);
  const provider = settings.record === undefined
    ? logProvider(readOutcomes(settings), coordinator)
    : await recordOrPlay(coordinator, settings.record, settings);
  await coordinator.mount("providers", provider, { name: NAME });
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
  const is_recording = openRecording(path) !== undefined || stateOf(coordinator).recording === true;
  if (known !== null && !is_recording) return playingProvider(known, coordinator, record);
  await requireGrant(coordinator, ["write"], path, `record to ${JSON.stringify(record)}`);
  const inner = innerProvider(coordinator, config.provider, record);
  coordinator.session_state[STATE_KEY] = { recording: true };
  return recordingProvider(inner, coordinator, beginRecording(coordinator, path, known));
}

const STATE_KEY = "provider-replay";

/** Returns what this module has saved in the session. */
function stateOf({ session_state }: Coordinator): { recording?: true; calls?: number; played?: number[] } {
  return session_state[STATE_KEY] ?? {}; // only this module writes it
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
 * Checks that this module has one of the permissions for a file: a built-in module runs in the program,
 * without a sandbox, so it checks its grant itself (src/docs/security.md#permissions).
 *
 * @throws {PreampError} `tool_permission_denied`
 */
async function requireGrant(
  { permissions: granted }: Coordinator,
  permissions: readonly ["read", "write"] | readonly ["write"],
  file: string,
  action: string,
): Promise<void> {
  for (const permission of permissions) {
    if (await isPathGranted(granted[permission], file, Deno.realPath)) return;
  }
  const [wanted] = permissions;
  throw new PreampError(
    "tool_permission_denied",
    `Cannot ${action}: permissions.${wanted} of the plan's entry of provider-replay ` +
      `does not cover ${JSON.stringify(file)} here (preamp plan explain)`,
  );
}

/** What is known of a provider whose facts are not recorded. */
const INFO = ProviderInfo({
  id: NAME,
  display_name: "Replay provider",
  capabilities: ["streaming", "tools", "structured_output"],
  defaults: { context_window: 100_000, max_output_tokens: 4096 },
});

/** Returns a provider with the outcomes of a log in order; the session's state has the position. */
function logProvider(outcomes: readonly Outcome[], coordinator: Coordinator): Provider {
  return providerOf(INFO, (_request, options) => {
    throwIfAborted(options?.signal);
    const { calls = 0 } = stateOf(coordinator);
    const outcome = outcomes[calls];
    if (!outcome) {
      const message = `Cannot answer call ${calls + 1}: the recording has ${outcomes.length} answers`;
      throw new LLMError("InvalidRequestError", message, { provider: NAME });
    }
    coordinator.session_state[STATE_KEY] = { calls: calls + 1 }; // a continued session continues with the next one
    return answerWith(outcome, options);
  });
}

/** Returns a provider that plays a recording; `label` is its name in messages. */
function playingProvider(recording: Recording, coordinator: Coordinator, label: string): Provider {
  const provider = providerOf(recording.info ?? INFO, async (request, options) => {
    const shape = await redactorOf(coordinator)(shapeOf(request));
    const { played = [] } = stateOf(coordinator); // also by earlier runs of the session
    const used = new Set(played);
    const index = recording.find(shape, used);
    if (index === null) {
      const message = `Cannot play ${JSON.stringify(label)}: ${recording.explain(shape, used)}; ` +
        "delete the file, and run once with the provider's key, to record again";
      throw new LLMError("InvalidRequestError", message, { provider: NAME });
    }
    coordinator.session_state[STATE_KEY] = { played: [...used.add(index)].sort((a, b) => a - b) };
    return await answerWith(recording.calls[index]!.outcome, options); // find() returns an index of it
  });
  return { ...provider, priority: 0 };
}

/** Returns a provider with this info and these answers. */
function providerOf(info: ProviderInfo, complete: Provider["complete"]): Provider {
  return {
    name: NAME,
    getInfo: () => info,
    listModels: () => Promise.resolve([]),
    complete,
    parseToolCalls: (response) => toChatResponse(response).tool_calls ?? [],
  };
}

/** Resolves to a recorded answer after streaming its blocks. @throws {LLMError} a recorded failure. */
async function answerWith(
  outcome: Outcome,
  { signal, onDelta }: CompleteOptions = {},
): Promise<ChatResponse> {
  throwIfAborted(signal);
  if ("failure" in outcome) throw failureOf(outcome.failure);
  const response = toChatResponse(structuredClone(outcome.response));
  for (const [block_index, { type, text, thinking, id, name }] of response.content.entries()) {
    if (type === "tool_call") {
      onDelta?.({ block_index, block_type: type, delta: "", id: `${id}`, name: `${name}` });
    } else if (typeof text === "string") onDelta?.({ block_index, block_type: "text", delta: text });
    else if (typeof thinking === "string") {
      onDelta?.({ block_index, block_type: "thinking", delta: thinking });
    }
    await null; // lets other code run, as between the deltas of a model
    throwIfAborted(signal);
  }
  return response;
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  throw new LLMError("AbortError", "Cannot finish the answer: the call was aborted", {
    provider: NAME,
    cause: signal.reason,
  });
}

function failureOf({ type = "LLMError", message = "", retryable, ...facts }: JsonObject): LLMError {
  const number = (fact: unknown) => typeof fact === "number" ? fact : null; // a file may contain anything
  return new LLMError(String(type) as LLMErrorType, String(message), {
    provider: NAME,
    retryable: retryable === true,
    status_code: number(facts.status_code),
    retry_after: number(facts.retry_after),
    limit_tokens: number(facts.limit_tokens),
    requested_tokens: number(facts.requested_tokens),
  });
}
