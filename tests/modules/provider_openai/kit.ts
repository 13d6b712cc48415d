/** Mounts `provider-openai` against a fake server. */
import type { ChatRequest, ChatResponse, JsonObject, Message, Provider, StreamDelta } from "preamp";
import { FakeClock, TestCoordinator } from "preamp/testing";
import { mount } from "../../../modules/provider-openai/mod.ts";
import { type Answer, fakeServer, type ReceivedRequest } from "../providers/fake_server.ts";

/** A mounted provider and its server. */
export interface Mounted extends AsyncDisposable {
  readonly provider: Provider;
  /** Address of the server. */
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  readonly coordinator: TestCoordinator;
  /** Resolves to the answer to a question, or to messages. */
  ask(question: string | Message[], request?: Partial<ChatRequest>): Promise<ChatResponse>;
  /** Resolves to the streamed answer, with its deltas. */
  stream(
    question: string | Message[],
    request?: Partial<ChatRequest>,
  ): Promise<{ answer: ChatResponse; deltas: StreamDelta[] }>;
}

/** Mounts the provider with `base_url` of a server that gives `answer`. */
export async function mounted(answer: Answer, config: JsonObject = {}): Promise<Mounted> {
  const server = fakeServer(answer);
  const clock = new FakeClock();
  const coordinator = new TestCoordinator({ session_id: "ses_1", clock });
  coordinator.hooks.register("provider:retry", (_event, { delay }) => {
    setTimeout(() => void clock.advance(Number(delay) * 1000), 0); // the wait begins after this event
    return null;
  });
  await mount(coordinator, { api_key: "sk-test", base_url: `${server.url}/v1`, max_retries: 0, ...config });
  const provider = coordinator.providers.openai!;
  const requestOf = (question: string | Message[], fields: Partial<ChatRequest> = {}): ChatRequest => ({
    messages: typeof question === "string" ? [{ role: "user", content: question }] : question,
    ...fields,
  });
  return {
    provider,
    url: server.url,
    requests: server.requests,
    coordinator,
    ask: (question, fields) => provider.complete(requestOf(question, fields)),
    async stream(question, fields) {
      const deltas: StreamDelta[] = [];
      const onDelta = (delta: StreamDelta) => void deltas.push(delta);
      return { answer: await provider.complete(requestOf(question, fields), { onDelta }), deltas };
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Returns the deltas of one block joined, by the block's index. */
export function joined(deltas: readonly StreamDelta[]): Record<number, string> {
  const texts: Record<number, string> = {};
  for (const { block_index, delta } of deltas) texts[block_index] = (texts[block_index] ?? "") + delta;
  return texts;
}
