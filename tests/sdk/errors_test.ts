import {
  classifyLLMError,
  errorCode,
  errorMessage,
  errorName,
  hasCode,
  LLMError,
  PreampError,
  providerErrorCode,
  toLLMError,
} from "../../src/sdk/errors.ts";
import { assert, assertEquals } from "../assert.ts";

Deno.test("classifyLLMError() reads the status first (MODEL-10)", () => {
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

Deno.test("classifyLLMError() believes the status more than the words (MODEL-10)", () => {
  assertEquals(classifyLLMError(401, "context length exceeded, timed out"), "AuthenticationError");
  assertEquals(classifyLLMError(503, "content filter"), "ProviderUnavailableError");
});

Deno.test("classifyLLMError() tells a quota from a limit that passes", () => {
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

Deno.test("classifyLLMError() reads what a 400 leaves open", () => {
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

Deno.test("LLMError carries its type as name, so that copies are told apart by it", () => {
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
  ], ["a", "b", "null", "c"]);
});

Deno.test("providerErrorCode() maps every failure to a code of http.md", () => {
  const pairs = [
    ["RateLimitError", "provider_rate_limited"],
    ["LLMTimeoutError", "provider_timeout"],
    ["AuthenticationError", "provider_auth"],
    ["ContextLengthError", "context_overflow"],
    ["StreamError", "provider_bad_response"],
  ];
  for (const [type, code] of pairs) assertEquals(providerErrorCode(type!), code);
});
