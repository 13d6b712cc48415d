/** The guard around a provider: no call that was cancelled, denied or not paid for; every answer read, settled and counted. */
import { PreampError } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import { toChatResponse, Usage } from "../../sdk/messages.ts";
import { addSnakeCase, methodOf } from "../../sdk/spelling.ts";
import { RequestMeter, toolTokens } from "../../sdk/tokens.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  ModelInfo,
  Provider,
  ProviderInfo,
  ToolCall,
} from "../../sdk/types.ts";
import { cancelledError, type Core } from "../core.ts";
import { withAbort } from "../deadline.ts";
import { limitOf } from "./tool.ts";

/** What the guard needs of the session beside the core. */
export interface ProviderDuties {
  /** Processes what hooks asked at `prompt:submit` and `provider:request` when the loop did not. */
  settleGates(): Promise<void>;
  /** Tells an answer that no `provider:response` has told. */
  tellResponse(): Promise<void>;
}

/** Output tokens reserved when neither request nor provider say how many an answer may have. */
const DEFAULT_MAX_OUTPUT_TOKENS = 4096;

/** Returns the guarded handle of a provider mounted under `name`. */
export function guardProvider(
  core: Core,
  provider: Provider,
  name: string,
  duties: ProviderDuties,
): Provider {
  const meter = new RequestMeter();
  let info: ProviderInfo | null = null;

  const parseToolCalls = (response: ChatResponse): ToolCall[] => {
    if (response.tool_calls) return response.tool_calls;
    const parsed = methodOf(provider, "parseToolCalls")?.(response);
    return Array.isArray(parsed) ? parsed.map(parseToolCall) : [];
  };

  const readInfo = (): ProviderInfo => {
    if (info === null) {
      const told = methodOf(provider, "getInfo")?.();
      const fields = isObject(told) ? told : {};
      info = {
        id: name,
        display_name: name,
        credential_env_vars: [],
        capabilities: [],
        config_fields: [],
        ...fields,
        defaults: isObject(fields.defaults) ? fields.defaults : {},
      };
    }
    return info;
  };

  const maxOutputTokens = (request: ChatRequest): number => {
    if (typeof request.max_output_tokens === "number") return request.max_output_tokens;
    const told = readInfo().defaults.max_output_tokens;
    return typeof told === "number" ? told : DEFAULT_MAX_OUTPUT_TOKENS;
  };

  const contextWindow = (): number => {
    const told = readInfo().defaults.context_window;
    return typeof told === "number" ? told : 0;
  };

  const complete = async (request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> => {
    const { turn } = core;
    if (turn === null) {
      throw new PreampError("internal", `Cannot call provider "${name}": no turn is running`);
    }
    if (core.cancellation.is_cancelled) throw cancelledError();
    await core.beginTurn();
    await duties.tellResponse();
    await duties.settleGates();
    if (turn.denied !== null) throw new PreampError("denied", turn.denied);
    const asked = maxOutputTokens(request);
    const tokens = meter.count(request.messages);
    const of_tools = toolTokens(request.tools);
    core.request_size = { tokens, budget: Math.max(0, contextWindow() - Math.trunc(asked / 2) - of_tools) };
    let reservation;
    try {
      reservation = core.ceilings.reserveCall(tokens + of_tools, asked);
    } catch (error) {
      turn.limit ??= limitOf(error);
      throw error;
    }
    const lowered = reservation.max_output_tokens < asked
      ? { ...request, max_output_tokens: reservation.max_output_tokens }
      : request;
    const signal = joinSignals(core, options.signal);
    let response: ChatResponse;
    try {
      const told = await withAbort(
        Promise.resolve(
          provider.complete(lowered, options.onDelta ? { signal, onDelta: options.onDelta } : { signal }),
        ),
        signal,
      );
      response = withUniqueIds(core, toChatResponse(told, methodOf(provider, "parseToolCalls")));
    } catch (error) {
      reservation.settle(null);
      turn.limit ??= limitOf(error);
      if (limitOf(error) === null) turn.provider_error = error;
      throw error;
    }
    const usage = response.usage ?? Usage({});
    response.usage = usage;
    turn.response = response;
    turn.response_usage = usage;
    turn.untold_response = name;
    turn.expect(response.tool_calls ?? []);
    try {
      reservation.settle(usage);
    } catch (error) {
      turn.limit ??= limitOf(error);
      throw error;
    }
    return response;
  };

  const handle = addSnakeCase({
    name,
    priority: priorityOf(provider),
    getInfo: readInfo,
    async listModels(): Promise<ModelInfo[]> {
      const models = await methodOf(provider, "listModels")?.();
      return Array.isArray(models) ? models : [];
    },
    complete,
    parseToolCalls,
  });
  const modelInfo = methodOf(provider, "getModelInfo");
  return modelInfo ? addSnakeCase(Object.assign(handle, { getModelInfo: () => modelInfo() })) : handle;
}

/** Returns the provider's priority: its own, its config's, else 100 (behaviour.md §7.2). */
function priorityOf(provider: Provider): number {
  if (typeof provider.priority === "number") return provider.priority;
  const { config } = provider as { config?: unknown };
  return isObject(config) && typeof config.priority === "number" ? config.priority : 100;
}

function joinSignals(core: Core, given: AbortSignal | undefined): AbortSignal {
  if (given === undefined || given === core.cancellation.signal) return core.step_signal;
  return AbortSignal.any([core.step_signal, given]);
}

/** A model that repeats an id within one answer gets new ids for the repetitions: every call is answered exactly once. */
function withUniqueIds(core: Core, response: ChatResponse): ChatResponse {
  const { tool_calls } = response;
  if (!tool_calls || tool_calls.length < 2) return response;
  const seen = new Set<string>();
  response.tool_calls = tool_calls.map((call) => {
    if (!seen.has(call.id)) {
      seen.add(call.id);
      return call;
    }
    return parseToolCall({
      id: core.host.newId("call"),
      name: call.name,
      arguments: call.invalid_arguments ?? call.arguments,
    });
  });
  return response;
}
