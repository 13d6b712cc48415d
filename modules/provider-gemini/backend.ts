/** The Gemini API (`generateContent`) through the vendor's client, without the client's own retries and loops. */
import { isObject, LLMError } from "preamp";
import type {
  Backend,
  BackendAnswer,
  CallIo,
  ListedModel,
  ProviderSettings,
  WireRequest,
} from "preamp/provider";
// @ts-types="./client_types.ts"
import { GoogleGenAI } from "@google/genai/web"; // the other builds import node:fs and a client for Google Cloud
import type {
  GenerateContentConfig,
  GenerateContentParameters,
  GoogleGenAI as Client,
  Transport,
} from "./client_types.ts";
import { AnswerCollector } from "./answer.ts";
import { toError } from "./errors.ts";
import { bareId } from "./models.ts";
import { type RequestSettings, toRequest } from "./request.ts";

/** Returns the backend. Imported on first use, because the client is large. */
export function createBackend({ api_key = "", base_url, config }: ProviderSettings): Backend {
  const { include_thoughts, api_version, safety_settings } = config;
  const client = new GoogleGenAI({
    apiKey: api_key,
    httpOptions: {
      apiVersion: typeof api_version === "string" ? api_version : "v1beta",
      ...(base_url === undefined ? {} : { baseUrl: base_url }),
    },
  });
  const settings: RequestSettings = {
    include_thoughts: include_thoughts !== false,
    ...(Array.isArray(safety_settings) ? { safety_settings: safety_settings.filter(isObject) } : {}),
  };
  return {
    toRequest: (call) => toRequest(call, settings),
    send: (request, io) => send(client, request, io),
    toError,
    listModels: (io) => listModels(client, io),
  };
}

async function send(client: Client, { body }: WireRequest, io: CallIo): Promise<BackendAnswer> {
  const { model, contents, config } = body as unknown as GenerateContentParameters; // made by toRequest
  const collector = new AnswerCollector({ tools: functionNames(config), onDelta: io.onDelta });
  return await explained(io, async (transport) => {
    const parameters = {
      model,
      contents,
      config: {
        ...config,
        ...transport,
        automaticContinuation: false,
        automaticFunctionCalling: { disable: true },
      },
    };
    if (io.onDelta) {
      for await (const chunk of await client.models.generateContentStream(parameters)) collector.add(chunk);
    } else collector.add(await client.models.generateContent(parameters));
    return collector.finish();
  });
}

function functionNames(config: GenerateContentConfig): string[] {
  return (config.tools ?? []).flatMap((tool) => (tool.functionDeclarations ?? []).map(({ name }) => name));
}

async function listModels(client: Client, io: CallIo): Promise<ListedModel[]> {
  return await explained(io, async (transport) => {
    const models: ListedModel[] = [];
    for await (const model of await client.models.list({ config: { pageSize: 1000, ...transport } })) {
      if (!model.name || !model.supportedActions?.includes("generateContent")) continue;
      models.push({
        id: bareId(model.name),
        ...(model.displayName ? { display_name: model.displayName } : {}),
        context_window: model.inputTokenLimit ?? 0,
        max_output_tokens: model.outputTokenLimit ?? 0,
      });
    }
    return models;
  });
}

/**
 * Runs a request. The client's errors have no headers and do not say whether a response had begun: a failure
 * after its begin is a `StreamError`, and `Retry-After` is added.
 */
async function explained<T>(io: CallIo, run: (transport: Transport) => Promise<T>): Promise<T> {
  let response: Response | undefined;
  const observed: typeof fetch = async (input, init) =>
    response = await io.fetch(input, { ...init, redirect: "error" }); // a redirect would take the key along
  try {
    return await run({ abortSignal: io.signal, httpOptions: { fetch: observed } });
  } catch (cause) {
    if (cause instanceof LLMError || io.signal.aborted || !response) throw cause;
    const { headers } = response;
    if (isObject(cause) && cause.name === "ApiError") throw Object.assign(cause, { headers });
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new LLMError("StreamError", `Cannot read the response of Gemini: ${message.slice(0, 300)}`, {
      cause,
    });
  }
}
