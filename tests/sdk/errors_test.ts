import { errorCode, errorMessage, errorName, hasCode, PreampError } from "../../src/sdk/errors.ts";
import {
  classifyLLMError,
  LLMError,
  providerErrorCode,
  retryAfterOf,
  statusOf,
  toLLMError,
} from "../../src/sdk/llm_errors.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals } from "../assert.ts";

Deno.test("classifyLLMError() reads the status first", () => {
  const cases: [number, string, boolean][] = [
    [401, "AuthenticationError", false],
    [403, "AccessDeniedError", false],
    [404, "NotFoundError", false],
    [413, "ContextLengthError", false],
    [429, "RateLimitError", true],
    [500, "ProviderUnavailableError", true],
    [503, "ProviderUnavailableError", true],
    [529, "ProviderUnavailableError", true],
    [408, "LLMTimeoutError", true],
    [402, "QuotaExceededError", false],
    [400, "InvalidRequestError", false],
    [422, "InvalidRequestError", false],
  ];
  for (const [status, type, retryable] of cases) {
    const found = classifyLLMError(status, "");
    assertEquals([status, found, new LLMError(found, "").retryable], [status, type, retryable]);
  }
});

Deno.test("classifyLLMError() believes the status more than the words", () => {
  assertEquals(classifyLLMError(401, "context length exceeded, timed out"), "AuthenticationError");
  assertEquals(classifyLLMError(503, "content filter"), "ProviderUnavailableError");
});

Deno.test("classifyLLMError() distinguishes a quota from a temporary rate limit", () => {
  assertEquals(
    classifyLLMError(429, "You exceeded your current quota, please check your plan and billing details."),
    "QuotaExceededError",
  );
  assertEquals(
    classifyLLMError(429, "Quota exceeded for metric free_tier_requests. Please retry in 35s."),
    "RateLimitError",
  );
  const lower_tier =
    "Rate limit reached on tokens per min (TPM). Add a payment method at account/billing. Please try again in 6s.";
  assertEquals(classifyLLMError(429, lower_tier), "RateLimitError");
  assertEquals(
    classifyLLMError(400, "Your credit balance is too low to access the API."),
    "QuotaExceededError",
  );
});

Deno.test("classifyLLMError() classifies a 400 by its message", () => {
  assertEquals(
    classifyLLMError(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "ContextLengthError",
  );
  assertEquals(
    classifyLLMError(400, "This model's maximum context length is 128000 tokens."),
    "ContextLengthError",
  );
  assertEquals(
    classifyLLMError(400, "The input token count (1200000) exceeds the maximum number of tokens allowed"),
    "ContextLengthError",
  );
  assertEquals(
    classifyLLMError(400, "The response was filtered by the content management policy"),
    "ContentFilterError",
  );
  assertEquals(classifyLLMError(400, "messages: at least one message is required"), "InvalidRequestError");
});

Deno.test("classifyLLMError() reads failures without a status", () => {
  assertEquals(classifyLLMError(null, "error sending request for url"), "NetworkError");
  assertEquals(classifyLLMError(null, "fetch failed"), "NetworkError");
  assertEquals(classifyLLMError(null, "The operation timed out"), "LLMTimeoutError");
  assertEquals(classifyLLMError(null, "Overloaded"), "ProviderUnavailableError");
  assertEquals(classifyLLMError(null, "who knows"), "LLMError");
});

Deno.test("toLLMError() keeps an LLMError of any copy of the class", () => {
  const own = new LLMError("RateLimitError", "slow down", { retry_after: 3 });
  assert(toLLMError(own) === own);
  const foreign = Object.assign(new Error("slow down"), {
    name: "RateLimitError",
    type: "RateLimitError",
    retryable: false,
    retry_after: 3,
  });
  const error = toLLMError(foreign, { provider: "mock" });
  assertEquals([error.type, error.retryable, error.retry_after, error.provider], [
    "RateLimitError",
    false,
    3,
    "mock",
  ]);
  assert(error.cause === foreign);
});

Deno.test("toLLMError() knows aborts, timeouts and vendors' statuses", () => {
  assertEquals(toLLMError(new DOMException("stop", "AbortError")).type, "AbortError");
  assertEquals(toLLMError(new DOMException("late", "TimeoutError")).type, "LLMTimeoutError");
  const vendor = toLLMError(Object.assign(new Error("busy"), { status: 503 }));
  assertEquals([vendor.type, vendor.status_code, vendor.retryable], ["ProviderUnavailableError", 503, true]);
  assertEquals(toLLMError("broken pipe").message, "broken pipe");
});

Deno.test("LLMError has its type as name, so that copies of the class can be distinguished", () => {
  const error = new LLMError("NotFoundError", "no such model", { model: "m", status_code: 404 });
  assertEquals([errorName(error), error.name, error.model, error.delay_multiplier], [
    "NotFoundError",
    "NotFoundError",
    "m",
    1,
  ]);
});

Deno.test("errorCode() and hasCode() read the code of any copy of the class", () => {
  assert(hasCode(new PreampError("plan_invalid", "x"), "plan_invalid"));
  assertEquals(errorCode({ code: "denied" }), "denied");
  assertEquals(errorCode(new Error("x")), undefined);
  assertEquals(errorCode(null), undefined);
});

Deno.test("errorMessage() reads anything that was thrown", () => {
  assertEquals([
    errorMessage(new Error("a")),
    errorMessage("b"),
    errorMessage(null),
    errorMessage({ message: "c" }),
    errorMessage({ code: 5, key: "secret" }),
    errorMessage({}),
  ], ["a", "b", "null", "c", "an object with code, key", "an object with no keys"]);
});

Deno.test("providerErrorCode() maps every failure to a code of http.md", () => {
  const pairs = [
    ["RateLimitError", "provider_rate_limited"],
    ["LLMTimeoutError", "provider_timeout"],
    ["NetworkError", "provider_unreachable"],
    ["ProviderUnavailableError", "provider_overloaded"],
    ["AuthenticationError", "provider_auth"],
    ["ContextLengthError", "context_overflow"],
    ["StreamError", "provider_bad_response"],
  ];
  for (const [type, code] of pairs) assertEquals(providerErrorCode(type!), code);
});

/** Errors of vendors' SDKs: their fields, and the expected failure type. */
const VENDORS: readonly [
  what: string,
  fields: JsonObject,
  message: string,
  type: string,
  retryable: boolean,
  retry_after?: number,
][] = [
  ["a wrong key", { status: 401 }, "401 Incorrect API key provided", "AuthenticationError", false],
  ["a forbidden model", { status: 403 }, "403 Country not supported", "AccessDeniedError", false],
  ["no such model", { status: 404, type: "not_found_error" }, "404 model not found", "NotFoundError", false],
  [
    "a rate limit",
    { status: 429, headers: new Headers({ "retry-after": "7" }) },
    "429 Too many requests",
    "RateLimitError",
    true,
    7,
  ],
  [
    "a rate limit, headers as a record",
    { status: 429, headers: { "Retry-After": "2.5" } },
    "slow down",
    "RateLimitError",
    true,
    2.5,
  ],
  [
    "a rate limit in milliseconds",
    { status: 429, headers: { "retry-after-ms": "250", "retry-after": "1" } },
    "slow",
    "RateLimitError",
    true,
    0.25,
  ],
  [
    "a quota by its code",
    { status: 429, name: "RateLimitError", code: "insufficient_quota" },
    "You exceeded your current quota",
    "QuotaExceededError",
    false,
  ],
  [
    "too long a context",
    { status: 400 },
    "400 This model's maximum context length is 8192 tokens",
    "ContextLengthError",
    false,
  ],
  [
    "too long a context by its code",
    { status: 400, code: "context_length_exceeded" },
    "400 Please shorten",
    "ContextLengthError",
    false,
  ],
  [
    "a wrong request",
    { status: 400, type: "invalid_request_error" },
    "400 messages: must not be empty",
    "InvalidRequestError",
    false,
  ],
  ["an overloaded backend", { status: 529 }, "529 Overloaded", "ProviderUnavailableError", true],
  ["a broken backend", { statusCode: 500 }, "Internal error", "ProviderUnavailableError", true],
  [
    "an axios error",
    { response: { status: 503, headers: { "retry-after": "3" } } },
    "Request failed",
    "ProviderUnavailableError",
    true,
    3,
  ],
  ["no connection", { name: "APIConnectionError" }, "Connection error.", "NetworkError", true],
  ["a timeout", { name: "APIConnectionTimeoutError" }, "Request timed out.", "LLMTimeoutError", true],
  ["an author's own type", { name: "ContentFilterError", status: 400 }, "no", "ContentFilterError", false],
];

for (const [what, fields, message, type, retryable, retry_after = null] of VENDORS) {
  Deno.test(`toLLMError() classifies an error of an SDK: ${what}`, () => {
    const error = toLLMError(Object.assign(new Error(message), fields), { provider: "p" });
    assertEquals([error.type, error.retryable, error.retry_after, error.message, error.provider], [
      type,
      retryable,
      retry_after,
      message,
      "p",
    ]);
  });
}

Deno.test("retryAfterOf() reads a date, and returns null for an unreadable value", () => {
  const at = (value: string) => retryAfterOf({ headers: { "retry-after": value } });
  const seconds = at(new Date(Date.now() + 3_600_000).toUTCString())!;
  assert(seconds >= 3_000 && seconds <= 3_600, String(seconds));
  assertEquals([at("Wed, 21 Oct 2015 07:28:00 GMT"), at("soon"), at("-1"), at("")], [0, null, null, null]);
  assertEquals(at("9".repeat(400)), null); // not a finite number
  const broken = {
    get headers() {
      throw new Error("no");
    },
  };
  assertEquals([retryAfterOf(broken), retryAfterOf(null), statusOf(broken), statusOf({ status: "429" })], [
    null,
    null,
    null,
    null,
  ]);
});
