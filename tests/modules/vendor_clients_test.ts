/** The vendors' own clients read the fakes of these tests: what the adapter reads is the vendors' format. */
import { Anthropic } from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai/web";
import { OpenAI } from "openai";
import { assertEquals } from "../assert.ts";
import { CHAT, RESPONSES } from "./provider_openai/vendors.ts";
import { ANTHROPIC } from "./providers/anthropic_wire.ts";
import { configOn, fakeVendor } from "./providers/fake_vendor.ts";
import type { FakeAnswer, Vendor } from "./providers/faults.ts";
import { GEMINI } from "./providers/gemini_wire.ts";

const CALL = { id: "call_a", name: "lookup", arguments: ['{"key":', '"ä"}'] };
const ANSWER: FakeAnswer = { text: ["Grüße ", "🚀"], calls: [CALL] };
const READ = { text: "Grüße 🚀", calls: [["lookup", { key: "ä" }]] };

type Read = { text: string; calls: unknown[] };

/** Reads one answer with a vendor's client. */
const CLIENTS: readonly [vendor: Vendor, read: (url: string, stream: boolean) => Promise<Read>][] = [
  [ANTHROPIC, async (baseURL, stream) => {
    const { messages } = new Anthropic({ apiKey: "k", baseURL, maxRetries: 0, logLevel: "off" });
    const body = {
      model: "m",
      max_tokens: 9,
      messages: [{ role: "user" as const, content: "Hi" }],
    };
    const { content } = stream ? await messages.stream(body).finalMessage() : await messages.create(body);
    return {
      text: content.map((block) => block.type === "text" ? block.text : "").join(""),
      calls: content.flatMap((block) => block.type === "tool_use" ? [[block.name, block.input]] : []),
    };
  }],
  [RESPONSES, async (baseURL, stream) => {
    const { responses } = new OpenAI({ apiKey: "k", baseURL, maxRetries: 0, logLevel: "off" });
    const body = { model: "m", input: "Hi" };
    const response = stream ? await responses.stream(body).finalResponse() : await responses.create(body);
    return {
      text: response.output_text,
      calls: response.output.flatMap((item) =>
        item.type === "function_call" ? [[item.name, JSON.parse(item.arguments)]] : []
      ),
    };
  }],
  [CHAT, async (baseURL, stream) => {
    const { chat: { completions } } = new OpenAI({ apiKey: "k", baseURL, maxRetries: 0, logLevel: "off" });
    const body = { model: "m", messages: [{ role: "user" as const, content: "Hi" }] };
    const completion = stream
      ? await completions.stream(body).finalChatCompletion()
      : await completions.create(body);
    const { content, tool_calls = [] } = completion.choices[0]!.message;
    return {
      text: content ?? "",
      calls: tool_calls.flatMap((call) =>
        call.type === "function" ? [[call.function.name, JSON.parse(call.function.arguments)]] : []
      ),
    };
  }],
  [GEMINI, async (baseUrl, stream) => {
    const { models } = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl } });
    const body = { model: "m", contents: "Hi" };
    const chunks = stream
      ? await Array.fromAsync(await models.generateContentStream(body))
      : [await models.generateContent(body)];
    const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    return {
      text: parts.map(({ text }) => text ?? "").join(""),
      calls: parts.flatMap(({ functionCall: call }) => call ? [[call.name, call.args]] : []),
    };
  }],
];

for (const [vendor, read] of CLIENTS) {
  for (const stream of [false, true]) {
    Deno.test(`${vendor.api ?? vendor.name}: the vendor's client reads the fake, stream ${stream}`, async () => {
      await using server = fakeVendor(vendor, [ANSWER]);
      assertEquals(await read(String(configOn(server.url, vendor).base_url), stream), READ);
    });
  }
}
