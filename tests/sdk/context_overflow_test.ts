import { LLMError, overflowOf, toLLMError } from "../../src/sdk/llm_errors.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import { assertEquals } from "../assert.ts";
import { OVERFLOW_MESSAGES } from "../support/hostile_inputs.ts";

/** Messages of vendors, and the limit and the size that they state. */
const MESSAGES:
  readonly (readonly [vendor: string, message: string, limit: number | null, size: number | null])[] = [
    ["Anthropic", "prompt is too long: 213462 tokens > 200000 maximum", 200_000, 213_462],
    [
      "Anthropic, as its SDK says it",
      '400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}',
      200_000,
      213_462,
    ],
    [
      "Anthropic with an answer",
      "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
      178_667,
      188_240,
    ],
    [
      "OpenAI",
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130123 tokens. Please reduce the length of the messages.",
      128_000,
      130_123,
    ],
    [
      "OpenAI with an answer",
      "This model's maximum context length is 4097 tokens. However, you requested 4927 tokens (3927 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
      3097,
      3927,
    ],
    [
      "OpenAI with functions",
      "This model's maximum context length is 4097 tokens. However, you requested 4927 tokens (3827 in the messages, 100 in the functions, and 1000 in the completion).",
      3097,
      3927,
    ],
    [
      "OpenAI completions",
      "This model's maximum context length is 4097 tokens, however you requested 5360 tokens (1360 in your prompt; 4000 for the completion). Please reduce your prompt; or completion length.",
      97,
      1360,
    ],
    [
      "OpenAI Responses",
      "Your input exceeds the context window of this model. Please adjust your input and try again.",
      null,
      null,
    ],
    [
      "OpenRouter",
      "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (130000 of text input, 2000 of tool input, 8000 in the output). Please reduce the length of either one.",
      123_072,
      132_000,
    ],
    [
      "vLLM",
      "This model's maximum context length is 4096 tokens. However, your request has 5001 input tokens.",
      4096,
      5001,
    ],
    [
      "vLLM with an answer",
      "This model's maximum context length is 4096 tokens. However, you requested 1000 output tokens and your prompt contains at least 3097 input tokens, for a total of at least 4097 tokens.",
      3096,
      3097,
    ],
    [
      "vLLM, newer",
      "You passed 5001 input tokens and requested 1000 output tokens. However, the model's context length is only 4096 tokens.",
      3096,
      5001,
    ],
    [
      "Gemini",
      "The input token count (1200345) exceeds the maximum number of tokens allowed (1048576).",
      1_048_576,
      1_200_345,
    ],
    [
      "Gemini, live",
      "The input token count exceeds the maximum number of tokens allowed 1048576.",
      1_048_576,
      null,
    ],
    [
      "llama.cpp",
      "the request exceeds the available context size (4096 tokens), try increasing it",
      4096,
      null,
    ],
    [
      "llama.cpp with both",
      "request (5120 tokens) exceeds the available context size (4096 tokens), try increasing it",
      4096,
      5120,
    ],
    [
      "llama.cpp, whole body",
      '{"error":{"code":400,"message":"the request is too long for the context size","type":"exceed_context_size_error","n_prompt_tokens":5120,"n_ctx":4096}}',
      4096,
      5120,
    ],
    ["Ollama", "the input length exceeds the context length", null, null],
    [
      "LM Studio",
      "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
      4096,
      null,
    ],
    [
      "xAI",
      "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
      131_072,
      150_000,
    ],
    [
      "Mistral",
      "Prompt contains 40961 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
      32_768,
      40_961,
    ],
    [
      "Cohere",
      "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt.",
      4081,
      4292,
    ],
    ["thousands with commas", "maximum context length is 1,048,576 tokens", 1_048_576, null],
    ["Groq", "Please reduce the length of the messages or completion.", null, null],
    ["no number that is a size", "prompt is too long", null, null],
    ["a limit that leaves no room", "context limit: 10 + 300 > 200", null, 10],
  ];

Deno.test("a ContextLengthError has the numbers of each vendor's message", () => {
  for (const [vendor, message, limit_tokens, requested_tokens] of MESSAGES) {
    const error = toLLMError(Object.assign(new Error(message), { status: 400 }));
    assertEquals(
      [vendor, error.type, overflowOf(error)],
      [vendor, "ContextLengthError", { limit_tokens, requested_tokens }],
    );
  }
});

Deno.test("a 413 with the limits of a rate states how small the request must be", () => {
  const message =
    "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8123, please reduce your message size";
  const error = Object.assign(new Error(message), { status: 413 });
  assertEquals(overflowOf(error), { limit_tokens: 6000, requested_tokens: 8123 });
});

Deno.test("overflowOf() prefers fields to the message, and returns null for other failures", () => {
  const message = "prompt is too long: 10 tokens > 5 maximum";
  const numbers = { limit_tokens: 8, requested_tokens: 9 };
  assertEquals(overflowOf(new LLMError("ContextLengthError", message, numbers)), numbers);
  assertEquals(overflowOf({ name: "ContextLengthError", message, ...numbers }), numbers); // of another copy of the class
  assertEquals(overflowOf(new LLMError("InvalidRequestError", message)), null);
  assertEquals(overflowOf(new LLMError("RateLimitError", "slow down")), null);
  assertEquals(overflowOf(new PreampError("limit_reached", "context limit: too many tokens")), null);
  assertEquals(Object.keys(new LLMError("RateLimitError", message)).includes("limit_tokens"), false);
});

Deno.test("a count that is no positive whole number is not used", () => {
  for (const bad of [NaN, Infinity, 0, -1, 0.5]) {
    const numbers = { limit_tokens: bad, requested_tokens: bad };
    const nothing = { limit_tokens: null, requested_tokens: null };
    assertEquals(overflowOf(new LLMError("ContextLengthError", "too long", numbers)), nothing);
    assertEquals(overflowOf({ name: "ContextLengthError", message: "too long", ...numbers }), nothing);
  }
});

Deno.test("a message of any length is read", () => {
  for (const message of OVERFLOW_MESSAGES) {
    const found = overflowOf(new LLMError("ContextLengthError", message));
    assertEquals(Object.keys(found!).sort(), ["limit_tokens", "requested_tokens"]);
  }
});
