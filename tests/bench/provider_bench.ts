/**
 * Measures what a provider adds to its vendor's own client: a whole answer, and a stream of 200 deltas. Both
 * sides send the same request with 20 messages to the same server in another thread, and keep the whole
 * answer.
 */
import { Anthropic } from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai/web";
import { OpenAI } from "openai";
import type { ChatRequest, JsonObject, Message, Module } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { systemClock } from "../../src/process/system_clock.ts";
import { CHAT, RESPONSES } from "../modules/provider_openai/vendors.ts";
import { ANTHROPIC } from "../modules/providers/anthropic_wire.ts";
import type { Vendor } from "../modules/providers/faults.ts";
import { GEMINI } from "../modules/providers/gemini_wire.ts";
import { OLLAMA } from "../modules/providers/ollama_wire.ts";
import { print, report, tableOf } from "./figures.ts";
import type { Bytes } from "./provider_server.ts";
import { middle, ratio, takeTurns } from "./rounds.ts";

const DELTAS = 200;
const ROUNDS = 15;
const CALLS = { whole: 40, stream: 10 };

const MESSAGES: Message[] = Array.from({ length: 21 }, (_, index) => ({
  role: index % 2 === 0 ? "user" : "assistant",
  content: `Message ${index}: ${"word ".repeat(30)}`,
}));
const REQUEST: ChatRequest = { messages: MESSAGES };

/** A call with the vendor's own client; resolves to the text of the answer. */
type OwnCall = (stream: boolean) => Promise<string>;

interface Row {
  readonly vendor: Vendor;
  /** Returns the own call of a client for a server. */
  own(url: string): OwnCall;
}

const ROWS: readonly Row[] = [
  {
    vendor: ANTHROPIC,
    own: (baseURL) => {
      const client = new Anthropic({
        apiKey: "k",
        baseURL,
        maxRetries: 0,
        logLevel: "off",
        openTelemetry: false,
      });
      const messages = MESSAGES as Anthropic.MessageParam[]; // of users and assistants only
      const body = { model: "claude-sonnet-5-5", max_tokens: 8000, messages };
      return async (stream) => {
        const message = stream
          ? await client.messages.stream(body).finalMessage()
          : await client.messages.create(body);
        return message.content.map((block) => block.type === "text" ? block.text : "").join("");
      };
    },
  },
  {
    vendor: RESPONSES,
    own: (baseURL) => {
      const client = new OpenAI({ apiKey: "k", baseURL, maxRetries: 0, logLevel: "off" });
      const input = MESSAGES as OpenAI.Responses.EasyInputMessage[]; // of users and assistants only
      const body = { model: "gpt-6.1-terra", max_output_tokens: 8000, input };
      return async (stream) => {
        const response = stream
          ? await client.responses.stream(body).finalResponse()
          : await client.responses.create(body);
        return response.output_text;
      };
    },
  },
  {
    vendor: CHAT,
    own: (baseURL) => {
      const client = new OpenAI({ apiKey: "k", baseURL, maxRetries: 0, logLevel: "off" });
      const messages = MESSAGES as OpenAI.Chat.ChatCompletionMessageParam[]; // of users and assistants only
      const body = { model: "gpt-6.1-terra", max_tokens: 8000, messages };
      return async (stream) => {
        const completion = stream
          ? await client.chat.completions.stream(body).finalChatCompletion()
          : await client.chat.completions.create(body);
        return completion.choices[0]?.message.content ?? "";
      };
    },
  },
  {
    vendor: GEMINI,
    own: (baseUrl) => {
      const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl, apiVersion: "v1beta" } });
      const contents = MESSAGES.map(({ role, content }) => ({
        role: role === "user" ? "user" as const : "model" as const,
        parts: [{ text: String(content) }],
      }));
      const body = { model: "gemini-3.8-flash", contents, config: { maxOutputTokens: 8000 } };
      return async (stream) => {
        let text = "";
        const answers = stream
          ? await client.models.generateContentStream(body)
          : [await client.models.generateContent(body)];
        for await (const { candidates } of answers) {
          text += candidates?.[0]?.content?.parts?.map((part) => part.text ?? "").join("") ?? "";
        }
        return text;
      };
    },
  },
  {
    // it has no client: the least that reads its answers
    vendor: OLLAMA,
    own: (url) => async (stream) => {
      const body = JSON.stringify({ model: "qwen3:8b", messages: MESSAGES, stream });
      const response = await fetch(`${url}/api/chat`, { method: "POST", body });
      let text = "";
      let rest = "";
      for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + part).split("\n");
        rest = lines.pop()!;
        for (const line of lines) text += JSON.parse(line).message.content;
      }
      return rest === "" ? text : text + JSON.parse(rest).message.content;
    },
  },
];

/** Starts a server in a worker and resolves to its address. */
async function startServer(bytes: Bytes): Promise<{ url: string; stop(): void }> {
  const worker = new Worker(new URL("./provider_server.ts", import.meta.url), { type: "module" });
  worker.postMessage(bytes);
  const port = await new Promise<number>((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<number>) => resolve(data);
  });
  return { url: `http://127.0.0.1:${port}`, stop: () => worker.terminate() };
}

/** Resolves to a call through the provider. */
async function providerCall(module: Module, name: string, config: JsonObject): Promise<OwnCall> {
  const coordinator = new TestCoordinator({ clock: systemClock() });
  await module.mount(coordinator, { api_key: "k", ...config });
  const provider = coordinator.providers[name]!; // just mounted
  return async (stream) => {
    let text = "";
    const options = stream ? { onDelta: ({ delta }: { delta: string }) => void (text += delta) } : {};
    const { content } = await provider.complete(REQUEST, options);
    coordinator.hooks.clear();
    return stream ? text : content.map((block) => String(block.text ?? "")).join("");
  };
}

async function repeat(call: OwnCall, stream: boolean, expected: string): Promise<void> {
  for (let count = 0; count < (stream ? CALLS.stream : CALLS.whole); count++) {
    if (await call(stream) !== expected) throw new Error("the answer differs");
  }
}

/** Milliseconds before the server's first byte: at once, and far sooner than any model. */
const DELAYS = [0, 20];

const figures: Record<string, number> = {};
const rows: (string | number)[][] = [];
for (const { vendor, own } of ROWS) {
  const deltas = Array.from({ length: DELTAS }, (_, index) => `word ${index} `);
  const answer = { text: deltas };
  for (const delay_ms of DELAYS) {
    const server = await startServer({
      whole: JSON.stringify(vendor.whole(answer)),
      parts: vendor.events(answer),
      stream_type: vendor.stream_type,
      delay_ms,
    });
    const url = server.url + (vendor.base_path ?? "");
    const ownCall = own(url);
    const ours = await providerCall(vendor.module, vendor.name, { base_url: url, ...vendor.config });
    for (const stream of [false, true]) {
      const taken = await takeTurns(ROUNDS, {
        own: () => repeat(ownCall, stream, deltas.join("")),
        ours: () => repeat(ours, stream, deltas.join("")),
      });
      const calls = stream ? CALLS.stream : CALLS.whole;
      const kind = `${stream ? `stream of ${DELTAS} deltas` : "whole answer"}, after ${delay_ms} ms`;
      const wall = ratio(taken.ours, taken.own, "wall_ms");
      const ms = (side: typeof taken.own) => middle(side, "wall_ms") / calls;
      const name = vendor.api ?? vendor.name;
      rows.push([
        `${name}, ${kind}`,
        ms(taken.own),
        ms(taken.ours),
        wall,
        ratio(taken.ours, taken.own),
      ]);
      figures[`${name.toLowerCase().replace(" ", "_")}_${stream ? "stream" : "whole"}_${delay_ms}`] = wall;
    }
    server.stop();
  }
}

print(tableOf(["call", "own client ms", "provider ms", "ratio", "ratio of processor time"], rows));
report("provider", figures);
