/** Records the calls of another provider of the session to a file. */
import {
  type ChatRequest,
  type ChatResponse,
  type CompleteOptions,
  type Coordinator,
  errorName,
  isObject,
  type JsonObject,
  LLMError,
  parentFolder,
  type Provider,
  ProviderInfo,
  toChatResponse,
  toLLMError,
  toPlainObject,
} from "preamp/base";
import { NAME, type Outcome, Recording, shapeOf } from "./recording.ts";

/** A file that sessions of this process are recording to. */
export interface OpenRecording {
  readonly path: string;
  readonly recording: Recording;
  /** Sessions that record to it. */
  sessions: number;
  /** Settles when the last write has ended. */
  written: Promise<void>;
}

/** Open recordings by path: sub-agents record to the file of their parent. */
const OPEN = new Map<string, OpenRecording>();

/** Returns the recording of a path that sessions of this process write, if any. */
export function openRecording(path: string): OpenRecording | undefined {
  return OPEN.get(path);
}

/** Opens a recording for a session until the session ends. */
export function beginRecording(
  coordinator: Coordinator,
  path: string,
  known: Recording | null,
): OpenRecording {
  let open = OPEN.get(path);
  if (!open) {
    open = { path, recording: known ?? new Recording(), sessions: 0, written: Promise.resolve() };
    OPEN.set(path, open);
  }
  const own = open;
  own.sessions++;
  coordinator.registerCleanup(async () => {
    if (--own.sessions === 0) OPEN.delete(path);
    await own.written;
  });
  return own;
}

/** Returns a provider that calls `inner` and records its answers and failures, without secrets. */
export function recordingProvider(
  inner: Provider,
  coordinator: Coordinator,
  open: OpenRecording,
): Provider {
  const info = infoOf(inner);

  async function complete(request: ChatRequest, options?: CompleteOptions): Promise<ChatResponse> {
    try {
      const response = await inner.complete(request, options);
      await save(request, { response: toPlainObject(response) });
      return response;
    } catch (error) {
      // a limit or a cancellation is not the provider's
      if (errorName(error) !== "PreampError" && errorName(error) !== "AbortError") {
        await save(request, { failure: factsOf(toLLMError(error)) });
      }
      throw error;
    }
  }

  async function save(request: ChatRequest, outcome: Outcome): Promise<void> {
    const { recording, path } = open;
    recording.info ??= info;
    recording.add(await redactorOf(coordinator)({ request: shapeOf(request), outcome }));
    const writing = open.written.then(() => write(path, recording.toText())); // one write at a time
    open.written = writing.catch(() => {});
    await writing.catch((cause) => {
      const message = `Cannot write the recording ${JSON.stringify(path)}: ${String(cause)}`;
      throw new LLMError("ConfigurationError", message, { provider: NAME, cause });
    });
  }

  return {
    name: NAME,
    priority: 0,
    getInfo: () => info,
    listModels: () => inner.listModels(),
    complete,
    parseToolCalls: (response) => toChatResponse(response).tool_calls ?? [],
  };
}

/** Returns the facts of a provider, with the sizes of its model. */
function infoOf(provider: Provider): ProviderInfo {
  const model: unknown = (provider as { getModelInfo?: () => unknown }).getModelInfo?.();
  const { context_window, max_output_tokens } = isObject(model) ? model : {};
  const info = ProviderInfo({ id: NAME, display_name: NAME, ...toPlainObject(provider.getInfo()) });
  const sizes = {
    ...(typeof context_window === "number" ? { context_window } : {}),
    ...(typeof max_output_tokens === "number" ? { max_output_tokens } : {}),
  };
  return { ...info, defaults: { ...info.defaults, ...sizes } };
}

/** Returns data without the values of secrets. */
type Redact = <T extends object>(data: T) => Promise<T>;

/** Returns the session's redaction by value. */
export function redactorOf(coordinator: Pick<Coordinator, "getCapability">): Redact {
  const redact = coordinator.getCapability("session.redact");
  return async <T extends object>(data: T) =>
    typeof redact === "function" ? await redact("context:message", data) as T : data; // the same data with other texts
}

function factsOf({ type, message, ...facts }: LLMError): JsonObject {
  const { status_code, retry_after, retryable, limit_tokens, requested_tokens } = facts;
  return toPlainObject({
    type,
    message,
    status_code,
    retry_after,
    retryable,
    limit_tokens,
    requested_tokens,
  });
}

/** Writes a file as a whole: a reader sees the old text or the new one. */
async function write(path: string, text: string): Promise<void> {
  await Deno.mkdir(parentFolder(path), { recursive: true });
  const part = `${path}.part`;
  await Deno.remove(part).catch(() => {}); // of a process that was ended; a link could lead out of the granted folder
  await Deno.writeTextFile(part, text, { createNew: true });
  await Deno.rename(part, path);
}
