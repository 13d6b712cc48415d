/** OpenAI's models through `@ai-sdk/openai`; Chat Completions of other servers through `compatible.ts`. */
// the main entry reads variables of the process when it is imported
import { OpenAIChatLanguageModel, OpenAIResponsesLanguageModel } from "@ai-sdk/openai/internal";
import type { JsonObject } from "preamp/base";
import type { Backend, CallSettings, Degradations, ProviderSettings } from "preamp/provider";
import { aiSdkBackend } from "./adapter.ts";
import { compatibleVendor } from "./compatible.ts";
import { authorization, classify, formatOf, functionSchema, listed, noBudget } from "./openai_facts.ts";
import type { ChunkFacts, Vendor } from "./vendor.ts";
import { ChatReader } from "./wire/chat_reader.ts";
import { objectsIn } from "./wire/event_reader.ts";
import { ResponsesReader } from "./wire/responses_reader.ts";

const OPENAI_URL = "https://api.openai.com/v1";
/** Minimum of the Responses API. */
const MIN_OUTPUT_TOKENS = 16;
/** Maximum number of stop texts; Chat Completions refuses more. */
const MAX_STOPS = 4;

/** Ids of models that answer messages, among all models of OpenAI. */
const CHAT_MODEL =
  /^(?:gpt-|o\d|chat-latest)(?!.*(?:audio|realtime|image|tts|transcribe|search|instruct|live|deep-research))/;

/** Returns whether a model reasons; Azure's gpt-35 is GPT-3.5. */
function reasons(model: string): boolean {
  return /(?:^|\/)(?:o\d|gpt-(?!35\b)(?:[5-9]|\d\d))(?!.*-chat)/.test(model);
}

/** Reports an effort that the package leaves out without a word. */
function reportEffort({ model, reasoning_effort: effort }: CallSettings, degradations: Degradations): void {
  if (effort !== undefined && !reasons(model)) {
    degradations.add(`reasoning_effort ${effort}`, `${model} does not reason`);
  }
}

/** Returns whether a model has breakpoints of the cache: GPT-5.6 and later. */
function hasBreakpoints(model: string): boolean {
  const [, major = "0", minor = "0"] = /(?:^|\/)gpt-(\d+)(?:\.(\d+))?(?:-|$)/.exec(model) ?? [];
  return Number(major) > 5 && major !== "35" || major === "5" && Number(minor) >= 6;
}

/** Returns whether an address is OpenAI's own, in any region. */
function isOpenAI(base_url: string | undefined): boolean {
  return base_url === undefined || /(^|\.)api\.openai\.com$/.test(new URL(base_url).hostname);
}

/** What both APIs of OpenAI share. */
function shared(settings: ProviderSettings, own_host: boolean) {
  const { base_url = OPENAI_URL } = settings;
  const headers = authorization(settings);
  return {
    key: "openai",
    media: /^image\/(jpeg|png|gif|webp)$|^application\/pdf$/,
    urls: /^image\/|^application\/pdf$/,
    takes_ids: true,
    instructs: true,
    schema: functionSchema,
    breakpoint: (model: string) =>
      own_host && hasBreakpoints(model) ? { promptCacheBreakpoint: { mode: "explicit" } } : undefined,
    classify,
    models: () => ({ url: `${base_url}/models`, headers }),
    listed: (model: JsonObject) => !own_host || CHAT_MODEL.test(String(model.id)) ? listed(model) : undefined,
    states_cost: /(^|\.)openrouter\.ai$/.test(new URL(base_url).hostname),
    config: {
      provider: "openai",
      url: ({ path }: { path: string }) => base_url + path,
      headers,
      fileIdPrefixes: ["file-"],
    },
  };
}

function responses(settings: ProviderSettings, session_id: string, own_host: boolean): Vendor {
  const { reasoning_summary: summary = "auto", parallel_tool_calls } = settings.config;
  const { config, ...common } = shared(settings, own_host);
  return {
    ...common,
    model: (id, { fetch }) => new OpenAIResponsesLanguageModel(id, { ...config, fetch }),
    options: (call, degradations) => {
      const { is_strict, ...format } = formatOf(call, degradations);
      const { stop, thinking_budget, reasoning_effort: effort } = call;
      if (stop && stop.length > 0) {
        degradations.add(
          `stop ${JSON.stringify(stop)}`,
          "the Responses API has no stop texts; use api: chat",
        );
      }
      if (thinking_budget !== undefined) noBudget(thinking_budget, degradations);
      if (own_host) reportEffort(call, degradations);
      return {
        ...format,
        maxOutputTokens: Math.max(call.max_output_tokens, MIN_OUTPUT_TOKENS),
        stopSequences: [],
        providerOptions: {
          openai: {
            store: false,
            ...(own_host ? { promptCacheKey: session_id } : {}),
            ...(own_host || effort === undefined ? {} : { forceReasoning: true }),
            strictJsonSchema: is_strict,
            reasoningSummary: summary === "none" ? null : String(summary),
            ...(typeof parallel_tool_calls === "boolean" ? { parallelToolCalls: parallel_tool_calls } : {}),
          },
        },
      };
    },
    reader: () => new ResponsesReader(),
    think_tags: !own_host,
    readChunk,
  };
}

/** Returns the reasoning of open models, of which the package reads summaries only. */
function readChunk({ type, delta, item_id, output }: JsonObject): ChunkFacts {
  if (type === "response.reasoning_text.delta") {
    return { thought: { id: `${item_id}:0`, text: String(delta) } };
  }
  const text = type === undefined ? reasoningIn(output) : "";
  return text === "" ? {} : { thought: { id: "reasoning", text } };
}

function reasoningIn(output: unknown): string {
  return objectsIn(output).filter(({ type }) => type === "reasoning").flatMap(({ content }) =>
    objectsIn(content)
  )
    .flatMap(({ type, text }) => type === "reasoning_text" ? String(text ?? "") : []).join("\n\n");
}

/**
 * Returns Chat Completions of OpenAI itself: its reasoning models take other parameters than those of other
 * servers.
 */
function chat(settings: ProviderSettings, session_id: string): Vendor {
  const { config, ...common } = shared(settings, true);
  const { parallel_tool_calls } = settings.config;
  return {
    ...common,
    urls: /^image\//,
    is_chat: true,
    reader: () => new ChatReader(),
    model: (id, { fetch }) => new OpenAIChatLanguageModel(id, { ...config, fetch }),
    options: (call: CallSettings, degradations: Degradations) => {
      const { is_strict, ...format } = formatOf(call, degradations);
      const { stop = [], thinking_budget } = call;
      reportEffort(call, degradations);
      if (thinking_budget !== undefined) noBudget(thinking_budget, degradations);
      const kept = reasons(call.model) ? [] : stop.slice(0, MAX_STOPS);
      const left_out = stop.slice(kept.length);
      if (left_out.length > 0 && kept.length === 0) {
        degradations.add(`stop ${JSON.stringify(stop)}`, `${call.model} does not accept stop texts`);
      } else if (left_out.length > 0) {
        degradations.add(
          `stop ${JSON.stringify(left_out)}`,
          `the API accepts at most ${MAX_STOPS} stop texts`,
        );
      }
      return {
        ...format,
        stopSequences: kept,
        providerOptions: {
          openai: {
            store: false,
            promptCacheKey: session_id,
            strictJsonSchema: is_strict,
            ...(typeof parallel_tool_calls === "boolean" ? { parallelToolCalls: parallel_tool_calls } : {}),
          },
        },
      };
    },
  };
}

/** Returns the backend. */
export function createBackend(settings: ProviderSettings, session_id = "preamp"): Backend {
  const own_host = isOpenAI(settings.base_url);
  const { api = own_host ? "responses" : "chat" } = settings.config;
  if (api === "responses") return aiSdkBackend(responses(settings, session_id, own_host));
  return aiSdkBackend(own_host ? chat(settings, session_id) : compatibleVendor(settings, OPENAI_URL));
}
