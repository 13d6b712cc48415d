/** The Gemini API (`generateContent`) through the vendor's client, without the client's own retries and loops. */
import { type Degradation, isObject } from "preamp/base";
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
} from "./client_types.ts";
import { AnswerCollector } from "./answer.ts";
import { toError } from "./errors.ts";
import { bareId } from "./models.ts";
import { type RequestSettings, toRequest } from "./request.ts";
import { Connection } from "./transport.ts";

/** Returns the backend. Imported on first use, because the client is large. */
export function createBackend({ api_key = "", base_url, config }: ProviderSettings): Backend {
  const { include_thoughts, api_version, safety_settings } = config;
  const client = new GoogleGenAI({
    apiKey: api_key,
    httpOptions: {
      apiVersion: typeof api_version === "string" ? api_version : "v1beta",
      ...(base_url === undefined ? {} : { baseUrl: base_url.replace(/\/v1(alpha|beta)?$/, "") }),
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
  const connection = new Connection(io);
  const collector = new AnswerCollector({
    tools: functionNames(config),
    onDelta: io.onDelta,
    tail: () => connection.tail(),
  });
  return await connection.run(async () => {
    const parameters = {
      model,
      contents,
      config: {
        ...config,
        ...connection.transport,
        automaticContinuation: false,
        automaticFunctionCalling: { disable: true },
      },
    };
    if (io.onDelta) {
      for await (const chunk of await client.models.generateContentStream(parameters)) collector.add(chunk);
    } else collector.add(await client.models.generateContent(parameters));
    const answer = collector.finish();
    const degradation = otherModel(bareId(model), answer.model);
    return degradation ? { ...answer, degradation } : answer;
  });
}

/** Returns that another model answered, such as the successor of a retired one. An alias may mean any model. */
function otherModel(requested: string, actual: string | undefined): Degradation | undefined {
  if (actual === undefined || !/^gemini-\d/.test(requested)) return undefined;
  if (actual.startsWith(requested) || requested.startsWith(actual)) return undefined;
  return { requested, actual, reason: "Gemini answered with another model" };
}

function functionNames(config: GenerateContentConfig): string[] {
  return (config.tools ?? []).flatMap((tool) => (tool.functionDeclarations ?? []).map(({ name }) => name));
}

async function listModels(client: Client, io: CallIo): Promise<ListedModel[]> {
  const connection = new Connection(io);
  return await connection.run(async () => {
    const models: ListedModel[] = [];
    for await (
      const model of await client.models.list({ config: { pageSize: 1000, ...connection.transport } })
    ) {
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
