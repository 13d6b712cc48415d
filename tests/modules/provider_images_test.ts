/**
 * Images in requests of every vendor: of a person and of a tool's result, as images; a sentence where the
 * vendor or the model takes none, or refuses one.
 */
import { type ChatResponse, type JsonObject, LLMError, type Message } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { jpeg, PNG, png } from "../support/images.ts";
import { CHAT } from "./provider_openai/vendors.ts";
import { configOn, VENDORS } from "./providers/fake_vendor.ts";
import { fakeServer, type ReceivedRequest } from "./providers/fake_server.ts";
import type { Vendor } from "./providers/faults.ts";

const image = (data: string, media_type = "image/png") => ({
  type: "image",
  source: { type: "base64", media_type, data },
});

/** A person shows the first image, a tool the second. */
const SHOWN = png(10, 10).toBase64();
const MESSAGES: Message[] = [
  { role: "user", content: [{ type: "text", text: "look" }, image(SHOWN)] },
  { role: "assistant", content: [{ type: "tool_call", id: "call_1", name: "read", input: {} }] },
  {
    role: "tool",
    tool_call_id: "call_1",
    name: "read",
    content: [{ type: "text", text: "it is" }, image(PNG), { type: "text", text: "a dot" }],
  },
];

/** Returns all texts in a body, and the images in base64, each in its order. */
function contentsOf(value: unknown): { texts: string[]; images: string[] } {
  const texts: string[] = [];
  const images: string[] = [];
  const add = (value: unknown) => {
    if (typeof value === "string") {
      const data = value.replace(/^data:image\/\w+;base64,/, "");
      (/^(iVBORw0KGgo|\/9j\/)/.test(data) ? images : texts).push(data);
    } else if (typeof value === "object" && value !== null) Object.values(value).forEach(add);
  };
  add(value);
  return { texts, images };
}

interface Setup {
  readonly config?: JsonObject;
  readonly messages?: Message[];
  /** Capabilities of the model of an Ollama server. */
  readonly capabilities?: readonly string[];
  readonly calls?: number;
  /** Returns the error for a request, by its number. */
  refuse?(request: ReceivedRequest, count: number): Response | undefined;
}

/** Makes calls; returns what the requests had, and the first answer. */
async function ask(
  vendor: Vendor,
  { config, messages = MESSAGES, capabilities, refuse, calls = 1 }: Setup = {},
) {
  const requests: ReceivedRequest[] = [];
  await using server = fakeServer((request) => {
    if (request.path === "/api/show") return Response.json(capabilities ? { capabilities } : {});
    requests.push(request);
    return refuse?.(request, requests.length) ?? Response.json(vendor.whole({ text: ["done"] }));
  });
  const coordinator = new TestCoordinator();
  await vendor.module.mount(coordinator, { ...configOn(server.url, vendor), max_retries: 0, ...config });
  const provider = coordinator.providers[vendor.name]!; // mounted above
  const call = () =>
    provider.complete({ messages }).catch((error: LLMError) => error) as Promise<ChatResponse | LLMError>;
  const answer = await call();
  for (let made = 1; made < calls; made++) await call();
  return { requests, sent: requests.map(({ body }) => contentsOf(body)), answer };
}

const ALL: readonly Vendor[] = [...Object.values(VENDORS), CHAT];
const TEXT_ONLY: ReadonlySet<string> = new Set(["deepseek"]);
const SENTENCE = /\[The image image\/png cannot be shown to this model\.\]/g;

for (const vendor of ALL) {
  const name = vendor.api ?? vendor.name;
  const takes_images = !TEXT_ONLY.has(vendor.name);
  Deno.test(`${name}: images of a person and of a tool are ${takes_images ? "images" : "sentences"}`, async () => {
    const { sent: [{ texts, images } = contentsOf(null)], answer } = await ask(vendor, {
      capabilities: ["completion", "vision"],
    });
    assertEquals(images, takes_images ? [SHOWN, PNG] : []);
    assert(!JSON.stringify(texts).includes("iVBOR"));
    assertEquals(texts.join().match(SENTENCE)?.length, takes_images ? undefined : 2);
    assert(texts.some((text) => text.includes("it is")) && texts.some((text) => text.includes("a dot")));
    assertEquals("degradation" in answer && answer.degradation !== undefined, !takes_images);
  });
  if (!takes_images) continue;
  Deno.test(`${name}: an image that the server refuses is left out, then and later`, async () => {
    const bad = jpeg(9_000, 9_000).toBase64();
    const messages = MESSAGES.with(2, { ...MESSAGES[2]!, content: [image(bad, "image/jpeg")] });
    const message =
      "messages.2.content.0.image.source.base64: image dimensions exceed max allowed size: 8000 pixels";
    const { sent, answer } = await ask(vendor, {
      messages,
      calls: 2,
      capabilities: ["completion", "vision"],
      refuse: ({ body }) =>
        JSON.stringify(body).includes(bad)
          ? Response.json({ error: { message, type: "invalid_request_error" } }, { status: 400 })
          : undefined,
    });
    assert(!(answer instanceof LLMError), String(answer));
    assertEquals(sent.map(({ images }) => images), [[SHOWN, bad], [SHOWN], [SHOWN]]);
    assertMatch(
      String(sent[1]!.texts.find((text) => text.includes("cannot"))),
      /image image\/jpeg cannot be shown/,
    );
    assertMatch(answer.degradation!.reason, /refused/);
  });
  Deno.test(`${name}: a model without images gets sentences, from the first refusal on`, async () => {
    const { sent, answer } = await ask(vendor, {
      capabilities: ["completion", "vision"],
      refuse: ({ body }) =>
        contentsOf(body).images.length > 0
          ? Response.json({ error: { message: "this model does not support image input" } }, { status: 400 })
          : undefined,
    });
    assert(!(answer instanceof LLMError), String(answer));
    assertEquals(sent.map(({ images }) => images.length), [2, 0]);
    assertEquals(sent[1]!.texts.join().match(SENTENCE)?.length, 2);
  });
}

Deno.test("a request that is too large loses its earlier images first", async () => {
  const { sent, answer } = await ask(VENDORS["provider-anthropic"]!, {
    refuse: (_, count) =>
      count === 1
        ? Response.json(
          { error: { type: "request_too_large", message: "Request exceeds the maximum size" } },
          {
            status: 413,
          },
        )
        : undefined,
  });
  assert(!(answer instanceof LLMError), String(answer));
  assertEquals(sent.map(({ images }) => images), [[SHOWN, PNG], [PNG]]);
});

Deno.test("Ollama: a model without vision gets sentences at once", async () => {
  const vendor = VENDORS["provider-ollama"]!;
  const { sent: [request], answer } = await ask(vendor, { capabilities: ["completion", "tools"] });
  assertEquals(request?.images, []);
  assert(!(answer instanceof LLMError));
  assertMatch(answer.degradation!.reason, /takes no images/);
  const { sent: [unknown] } = await ask(vendor); // an older server does not say
  assertEquals(unknown?.images, [SHOWN, PNG]);
});

Deno.test("the words of servers about images are understood", async () => {
  const vendor = CHAT;
  const NO_IMAGES: readonly (readonly [number, string])[] = [
    [
      400,
      "Failed to deserialize the JSON body into the target type: messages[7]: unknown variant `image_url`, expected `text`",
    ],
    [400, "Invalid content type. image_url is only supported by certain models."],
    [404, "No endpoints found that support image input"],
    [400, "qwen3 is not a multimodal model"],
    [400, "At most 0 image(s) may be provided in one request."],
    [500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"],
    [400, "messages[0].content must be a string"],
    [400, "Image inputs are not supported by this model."],
    [400, "This model doesn't support vision"],
  ];
  for (const [status, message] of NO_IMAGES) {
    const { sent, answer } = await ask(vendor, {
      refuse: (_, count) => count === 1 ? Response.json({ error: { message } }, { status }) : undefined,
    });
    assert(!(answer instanceof LLMError), message);
    assertEquals(sent.map(({ images }) => images.length), [2, 0], message);
  }
  const BAD: readonly string[] = [
    "Could not process image",
    "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 5281812 bytes > 5242880 bytes",
    "At least one of the image dimensions exceed max allowed size: 8000 pixels",
    "Unable to process input image. Please retry or report",
    "Invalid base64 image_url.",
    "You uploaded an unsupported image. Please make sure your image is valid.",
    "Image does not match the provided media type image/png",
  ];
  for (const message of BAD) {
    const { sent, answer } = await ask(vendor, {
      refuse: (_, count) => count === 1 ? Response.json({ error: { message } }, { status: 400 }) : undefined,
    });
    assert(!(answer instanceof LLMError), message);
    assertEquals(sent.map(({ images }) => images), [[SHOWN, PNG], [SHOWN]], message);
  }
  const { sent, answer } = await ask(vendor, {
    refuse: () => Response.json({ error: { message: "temperature must be at most 2" } }, { status: 400 }),
  });
  assert(answer instanceof LLMError);
  assertEquals(sent.length, 1);
});

Deno.test("the type of an image is what its bytes say", async () => {
  const messages: Message[] = [{ role: "user", content: [image(jpeg(10, 10).toBase64(), "image/png")] }];
  const { requests: [request] } = await ask(VENDORS["provider-anthropic"]!, { messages });
  assertMatch(JSON.stringify(request?.body), /"media_type":"image\/jpeg"/);
});
