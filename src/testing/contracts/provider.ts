/** The provider contract as a test suite. */
import { errorName } from "../../sdk/errors.ts";
import { deepFreeze, isObject, jsonEqual } from "../../sdk/json.ts";
import {
  type ChatRequest,
  type ChatResponse,
  type StreamDelta,
  textOf,
  toChatResponse,
} from "../../sdk/messages.ts";
import type { Provider } from "../../sdk/providers.ts";
import type { ToolCall } from "../../sdk/tools.ts";
import type { TestSessionOptions } from "../session.ts";
import {
  camelCased,
  type Cases,
  type CreateSubject,
  expect,
  inSession,
  registerCases,
  required,
  sessionOptions,
  type SuiteOptions,
  thrownBy,
  withSubject,
} from "./suite.ts";

/** Options of {@link testProvider}. */
export interface ProviderSuiteOptions extends SuiteOptions {
  /** A request that must be answered; default a greeting. */
  request?: ChatRequest;
  /** A request that must be answered with a tool call; without it, the case is left out. */
  tool_request?: ChatRequest;
  /** A request that must fail with an LLMError; without it, the case is left out. */
  failing_request?: ChatRequest;
}

const GREETING: ChatRequest = { messages: [{ role: "user", content: "Hello" }] };

const METHODS = ["getInfo", "listModels", "complete", "parseToolCalls"];

/** The provider of a case, with camelCase methods, and the requests of the suite. */
interface MountedProvider extends ProviderSuiteOptions {
  readonly provider: Provider;
  readonly request: ChatRequest;
}

/**
 * Registers the cases that every provider must pass. `create` makes a new module or provider per case. It
 * must answer without a network or a key, for example with a recorded `fetch`.
 */
export function testProvider(
  name: string,
  create: CreateSubject<Provider>,
  options: ProviderSuiteOptions = {},
): void {
  const { request = GREETING, tool_request, failing_request } = options;
  const cases = {
    ...CASES,
    ...(tool_request ? { "complete() asks for a tool": checkToolCall } : {}),
    ...(failing_request ? { "complete() fails with an LLMError": checkFailure } : {}),
  };
  registerCases<MountedProvider>(
    name,
    options,
    cases,
    (check) =>
      withSubject(create, "providers", options, ({ coordinator }) => {
        const [provider] = Object.values(coordinator.providers);
        expect(provider, "No provider was mounted and mount() did not return a Provider instance");
        const camel_cased = { ...camelCased(provider, METHODS), name: provider.name } as Provider;
        return check({ ...options, provider: camel_cased, request });
      }),
  );
  registerCases<TestSessionOptions>(
    name,
    options,
    { [MOUNTED]: (session) => inSession(session) },
    async (check) => {
      await check({ ...sessionOptions(options), providers: [required(await create(), options)] });
    },
  );
}

const MOUNTED = "mount() mounts a provider in a session";

const CASES: Cases<MountedProvider> = {
  "mount() mounts a provider"() {},
  "name is not empty"({ provider: { name } }) {
    expect(typeof name === "string" && name, "name must be a text that is not empty");
  },
  "getInfo() returns id, display_name and whole-number defaults": ({ provider }) =>
    checkInfo(provider.getInfo()),
  async "listModels() resolves to models with ids"({ provider }) {
    const models: unknown = await provider.listModels();
    expect(Array.isArray(models), "listModels must resolve to a list");
    for (const model of models) checkModel(model);
  },
  "parseToolCalls() finds none in a response of text"({ provider }) {
    const calls: unknown = provider.parseToolCalls({ content: [{ type: "text", text: "Hello" }] });
    expect(Array.isArray(calls) && calls.length === 0, "parseToolCalls must return an empty list");
  },
  "parseToolCalls() finds the calls of a response": ({ provider }) => checkParsed(provider),
  async "complete() resolves to a response"({ provider, request }) {
    const { content, tool_calls } = await complete(provider, request);
    expect(content.length > 0 || tool_calls, "the response holds neither content nor tool calls");
  },
  async "complete() does not change its request"({ provider, request }) {
    const input = structuredClone(request);
    await provider.complete(input);
    expect(jsonEqual(input, request), "complete changed the request it was given");
  },
  "complete() streams exactly what it resolves to": ({ provider, request }) => checkDeltas(provider, request),
  async "complete() rejects when it was cancelled before it began"({ provider, request }) {
    const error = await thrownBy(() => provider.complete(request, { signal: AbortSignal.abort() }));
    expect(error, "complete answered a request that was cancelled");
  },
};

async function checkToolCall({ provider, tool_request }: MountedProvider): Promise<void> {
  const request = tool_request!; // the case needs it
  const { tool_calls } = await complete(provider, request);
  expect(tool_calls?.length, "the response must hold a tool call");
  for (const call of tool_calls) checkCall(call);
  const offered = new Set(request.tools?.map((tool) => tool.name));
  for (const call of tool_calls) expect(offered.has(call.name), `"${call.name}" was not offered`);
}

async function checkFailure({ provider, failing_request }: MountedProvider): Promise<void> {
  const error = await thrownBy(() => provider.complete(failing_request!)); // the case needs it
  expect(error, "the request must fail");
  const name = errorName(error);
  expect(name.endsWith("Error") && name !== "Error", "the failure must have a type");
  const is_stated = isObject(error) && typeof error.retryable === "boolean";
  expect(is_stated, "the failure must say whether it is retryable");
}

async function complete(provider: Provider, request: ChatRequest): Promise<ChatResponse> {
  const value: unknown = await provider.complete(deepFreeze(structuredClone(request)));
  const response = toChatResponse(value, (input) => provider.parseToolCalls(input));
  const usage = isObject(value) ? value.usage : undefined;
  if (isObject(usage)) {
    for (const field of ["input_tokens", "output_tokens"]) {
      expect(
        Number.isSafeInteger(usage[field]) && Number(usage[field]) >= 0,
        `usage.${field} must be a whole number`,
      );
    }
  }
  return response;
}

function checkInfo(info: unknown): void {
  expect(isObject(info), "getInfo must return an object, not a promise of one");
  for (const field of ["id", "display_name"]) {
    expect(
      typeof info[field] === "string" && info[field],
      `getInfo().${field} must be a text that is not empty`,
    );
  }
  const { defaults = {} } = info;
  expect(isObject(defaults), "getInfo().defaults must be an object");
  for (const field of ["context_window", "max_output_tokens"]) {
    const value = defaults[field];
    const fits = value === undefined || (Number.isSafeInteger(value) && Number(value) > 0);
    expect(fits, `getInfo().defaults.${field} must be a whole number of tokens`);
  }
}

function checkModel(model: unknown): void {
  expect(isObject(model) && typeof model.id === "string" && model.id, "a model must have an id");
  for (const field of ["context_window", "max_output_tokens"]) {
    expect(
      Number.isSafeInteger(model[field]),
      `${field} of model "${model.id}" must be a whole number of tokens`,
    );
  }
}

function checkParsed(provider: Provider): void {
  const input = { expression: "6*7" };
  const call = { id: "call_1", name: "calculator", arguments: input, input };
  const response = {
    content: [{ type: "tool_call", id: "call_1", name: "calculator", input }],
    tool_calls: [call],
  };
  const calls: unknown = provider.parseToolCalls(response as unknown as ChatResponse); // a plain object
  // a provider without the capability `tools` may return none: calls are then read from the content
  const claims = provider.getInfo().capabilities?.includes("tools");
  if (!claims && Array.isArray(calls) && calls.length === 0) return;
  expect(
    Array.isArray(calls) && calls.length === 1,
    "parseToolCalls must return the one call of the response",
  );
  checkCall(calls[0]);
  expect(
    jsonEqual((calls[0] as ToolCall).arguments, input),
    "parseToolCalls must return the call's arguments",
  );
}

function checkCall(call: unknown): void {
  expect(isObject(call) && typeof call.id === "string" && call.id, "a tool call must have an id");
  expect(typeof call.name === "string" && call.name, "a tool call must name its tool");
  expect(isObject(call.arguments), "a tool call's arguments must be an object");
}

async function checkDeltas(provider: Provider, request: ChatRequest): Promise<void> {
  const deltas: StreamDelta[] = [];
  const response = toChatResponse(
    await provider.complete(request, { onDelta: (delta) => deltas.push(delta) }),
  );
  const texts = deltas.filter((delta) => delta.block_type === "text");
  if (texts.length === 0) return; // a provider need not stream
  const byBlock = new Map<number, string>();
  for (const { block_index, delta } of texts) {
    byBlock.set(block_index, (byBlock.get(block_index) ?? "") + delta);
  }
  const streamed = [...byBlock].sort(([a], [b]) => a - b).map(([, text]) => text).join("\n\n");
  expect(streamed === textOf(response.content), "the streamed text differs from the response's");
}
