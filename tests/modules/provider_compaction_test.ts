/**
 * Long sessions with little room: after each compaction the view becomes a request that the vendor's API
 * accepts, with every call beside its own result.
 */
import { assertToolPairs, TestCoordinator } from "preamp/testing";
import type { ContentBlock, JsonObject, Message, ToolCall } from "preamp";
import { parseConfig, SimpleContext } from "preamp/context";
import { type Backend, type Conversation, toConversation } from "preamp/provider";
import * as anthropic from "../../modules/ai-sdk/anthropic.ts";
import * as google from "../../modules/ai-sdk/google.ts";
import * as openai from "../../modules/ai-sdk/openai.ts";
import * as ollama from "../../modules/provider-ollama/backend.ts";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions, someOf } from "../support/cases.ts";
import { PIXEL, settingsOf } from "./provider_openai/bodies.ts";
import { CHAT, RESPONSES } from "./provider_openai/vendors.ts";
import { ANTHROPIC } from "./providers/anthropic_wire.ts";
import type { Vendor } from "./providers/faults.ts";
import { GEMINI } from "./providers/gemini_wire.ts";
import { OLLAMA } from "./providers/ollama_wire.ts";
import { OWN_BLOCKS } from "./providers/own_blocks.ts";
import {
  checkAnthropic,
  checkChat,
  checkGemini,
  checkOllama,
  checkResponses,
} from "./providers/request_rules.ts";
import { callOf, sentRequest, SETTINGS } from "./providers/sent_request.ts";

const { numRuns: TURNS } = propertyOptions(60, 300, 1000);

interface Api {
  /** Value of `provider` on its own blocks. */
  readonly vendor: string;
  readonly model: string;
  readonly backend: Backend;
  readonly wire: Vendor;
  check(body: JsonObject): void;
}

const APIS: Readonly<Record<string, Api>> = {
  "Messages": {
    vendor: "anthropic",
    model: "claude-sonnet-5-5",
    backend: anthropic.createBackend(SETTINGS),
    wire: ANTHROPIC,
    check: checkAnthropic,
  },
  "Responses": {
    vendor: "openai",
    model: "gpt-6.2-sol",
    backend: openai.createBackend(settingsOf({})),
    wire: RESPONSES,
    check: checkResponses,
  },
  "Chat Completions": {
    vendor: "openai",
    model: "local",
    backend: openai.createBackend(settingsOf({ base_url: "http://localhost/v1" })),
    wire: CHAT,
    check: checkChat,
  },
  "Gemini": {
    vendor: "gemini",
    model: "gemini-3.8-flash",
    backend: google.createBackend(SETTINGS),
    wire: GEMINI,
    check: (body) => checkGemini(body, true),
  },
  "Ollama": {
    vendor: "ollama",
    model: "qwen3:8b",
    backend: ollama.createBackend({ base_url: "http://localhost" }, { windowOf: () => 16_384, options: {} }),
    wire: OLLAMA,
    check: checkOllama,
  },
};

/** Returns numbers from 0 to 1, always the same ones for a seed (mulberry32). */
function numbersOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = state + 0x6d2b79f5 | 0;
    let mixed = Math.imul(state ^ state >>> 15, 1 | state);
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  };
}

const TEXTS = ["word and ", "函数返回一个值。", "🎉 ok ", "half \ud83d ", '{"key": [1, 22]}, '];
const LONG_NAME = `${"n".repeat(60)}.tool`;
const IMAGE: ContentBlock = {
  type: "image",
  source: { type: "base64", media_type: "image/png", data: PIXEL },
};
const PDF: ContentBlock = {
  type: "document",
  source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
};

/** Writes a session as a loop stores it: the messages between two requests, one list after the other. */
function* session(vendor: string, next: () => number): Generator<Message[]> {
  const pick = <T>(items: readonly T[]) => items[Math.floor(next() * items.length)]!;
  const text = (most: number) => pick(TEXTS).repeat(1 + Math.floor(next() ** 3 * most));
  const own = OWN_BLOCKS[vendor]!.filter(({ type }) => type !== "tool_call");
  const thoughts = () => next() < 0.6 ? [pick(own)] : [];
  let count = 0;
  const callOf = (): ToolCall => {
    // some models use the ids of earlier calls
    const [id, name] = [`call_${next() < 0.2 ? count % 3 : count}`, pick(["look", "run", LONG_NAME])];
    const input = { number: count++, text: text(4) };
    return { id, name, tool: name, input, arguments: input };
  };
  const resultOf = ({ id, name, input }: ToolCall): Message => {
    const said = `#${input.number} ${text(200)}`;
    return {
      role: "tool",
      tool_call_id: id,
      name,
      content: next() < 0.2 ? [{ type: "text", text: said }, pick([IMAGE, PDF])] : said,
      ...(next() < 0.1 ? { is_error: true } : {}),
    };
  };
  yield [{ role: "system", content: "You are brief." }];
  for (let turn = 0; turn < TURNS; turn++) {
    yield [{ role: "user", content: next() < 0.2 ? [{ type: "text", text: text(9) }, IMAGE] : text(90) }];
    for (let iteration = Math.floor(next() * 4); iteration > 0; iteration--) {
      const calls = Array.from({ length: 1 + Math.floor(next() * 3) }, callOf)
        .filter(({ id }, index, all) => all.findIndex((other) => other.id === id) === index);
      const blocks = calls.map(({ id, name, input }): ContentBlock => ({
        ...(vendor === "gemini" ? { thought_signature: "c2ln", provider: vendor } : {}),
        type: "tool_call",
        id,
        name,
        input,
      }));
      const said: ContentBlock[] = next() < 0.5 ? [{ type: "text", text: text(5) }] : [];
      const results = calls.map(resultOf).filter(() => next() < 0.97); // else the run was interrupted
      const hook: Message = { role: "user", content: text(5), metadata: { source: "hook" } };
      yield [
        { role: "assistant", content: [...thoughts(), ...said, ...blocks], tool_calls: calls },
        ...(next() < 0.3 ? results.reverse() : results),
        ...(next() < 0.1 || results.length < calls.length ? [hook] : []),
      ];
    }
    const cut = next() < 0.1;
    const answer: ContentBlock[] = cut ? [] : [{ type: "text", text: text(60) }];
    yield [{ role: "assistant", content: [...thoughts(), ...answer] }];
  }
}

const summarise = () =>
  Promise.resolve<Message>({ role: "user", content: "A summary.", metadata: { source: "context-summary" } });

/** Checks that the result of each call is its own, or the note about a missing one. */
function checkPairs({ turns }: Conversation): void {
  for (const [index, { role, parts }] of turns.entries()) {
    if (role === "user") continue;
    const calls = parts.filter((part) => part.type === "tool_call");
    const results = turns[index + 1]!.parts.filter((part) => part.type === "tool_result");
    assertEquals(results.length, calls.length);
    for (const [place, { input }] of calls.entries()) {
      const text = JSON.stringify(results[place]!.content);
      assert(text.includes(`#${input.number} `) || /has no result/.test(text), text);
    }
  }
}

for (const [name, { vendor, model, backend, wire, check }] of Object.entries(APIS)) {
  for (const budget of someOf([2500, 8000, 40_000], 2)) {
    Deno.test(`${name}: each request of ${TURNS} turns in ${budget} tokens is accepted`, async () => {
      const state = new TestCoordinator();
      const config = parseConfig({ max_tokens: budget, recall: budget === 8000 });
      const open = () => new SimpleContext(state, config, budget === 40_000 ? { summarise } : {});
      let context = open();
      let last: Message | undefined;
      let requests = 0;
      for (const messages of session(vendor, numbersOf(budget))) {
        for (const message of messages) await context.addMessage(message);
        last = messages.at(-1);
        if (last?.role === "assistant" || last?.role === "system") continue;
        const view = await context.getMessagesForRequest();
        assertToolPairs(view);
        const { conversation, repairs } = toConversation(view, vendor);
        assertEquals(repairs, []);
        checkPairs(conversation);
        const { body } = await sentRequest(backend, callOf({ model }, view, vendor), wire);
        check(body);
        if (++requests % 50 !== 0) continue;
        const resumed = open(); // as the next run does
        await resumed.setMessages(await context.getMessages());
        assertEquals(await resumed.getMessagesForRequest(), view);
        context = resumed;
      }
      assert(context.status.compactions > 1, `${context.status.compactions} compactions`);
    });
  }
}
