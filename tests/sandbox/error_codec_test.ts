import fc from "fast-check";
import { decodeGuestError, decodeHostError, encodeError } from "../../src/sandbox/error_codec.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import { LLMError, toLLMError } from "../../src/sdk/llm_errors.ts";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";

const across = (error: unknown) => JSON.parse(JSON.stringify(encodeError(error)));

Deno.test("an error of a module keeps name, message, stack, plain fields and causes on its way", () => {
  const cause = new RangeError("too far", { cause: "text" });
  const error = Object.assign(new TypeError("wrong", { cause }), {
    ...{ code: "E_X", status_code: 429, retryable: true, when: new Date(0), fn: () => {} },
  });
  const decoded = decodeGuestError(across(error), () => undefined) as typeof error;
  assert(decoded instanceof Error);
  assertEquals([decoded.name, decoded.message, decoded.stack], ["TypeError", "wrong", error.stack]);
  assertEquals(
    { ...decoded },
    { code: "E_X", status_code: 429, retryable: true, when: "1970-01-01T00:00:00.000Z" } as never,
  );
  const decoded_cause = decoded.cause as Error;
  assertEquals([decoded_cause.name, decoded_cause.message], ["RangeError", "too far"]);
});

Deno.test("an error of the host is the same to a module as inline: a PreampError with its facts, any other with its fields", () => {
  const limit = new PreampError("limit_reached", "no more", { facts: { limit: "max_tool_calls" } });
  const decoded = decodeHostError(across(limit)) as PreampError;
  assert(decoded instanceof PreampError);
  assertEquals([decoded.code, decoded.message, decoded.facts], ["limit_reached", "no more", limit.facts]);
  const failed = new LLMError("RateLimitError", "slow down", {
    status_code: 429,
    retryable: true,
    retry_after: 3,
  });
  const { status_code, retryable, retry_after } = decodeHostError(across(failed)) as LLMError;
  assertEquals([status_code, retryable, retry_after], [429, true, 3]);
});

Deno.test("a refused permission has its code, wherever Deno was asked", () => {
  for (const name of ["NotCapable", "PermissionDenied"]) {
    const decoded = decodeGuestError({ name, message: "no" }, () => undefined) as { code?: string };
    assertEquals(decoded.code, "tool_permission_denied");
  }
});

Deno.test("a refused permission names the line of the plan that grants it, not Deno's flag", () => {
  const adviceFor = (message: string) => {
    const stack = `NotCapable: ${message}\n    at execute (data:1:2)`;
    const decoded = decodeGuestError(
      { name: "NotCapable", message, stack },
      () => undefined,
      'module "tool-x"',
    ) as Error;
    assertEquals(decoded.stack, `NotCapable: ${decoded.message}\n    at execute (data:1:2)`);
    return decoded.message;
  };
  assertEquals(
    [
      'Requires net access to "api.example.com:443", run again with the --allow-net flag',
      "Requires env access, run again with the --allow-env flag",
      "Requires write access to <TMP>, run again with the --allow-write flag",
      'Requires ffi access to "/x.so", run again with the --allow-ffi flag',
      'Requires read access to "/etc", specify the required permissions during compilation using `deno compile --allow-read`',
      "Deno.exit is not available to modules",
    ].map(adviceFor),
    [
      'Requires net access to "api.example.com:443": the plan does not grant it to module "tool-x", whose entry needs permissions: {net: ["api.example.com:443"]}',
      'Requires env access: the plan does not grant it to module "tool-x", whose entry needs permissions: {env: true}',
      'Requires write access to <TMP>: the plan does not grant it to module "tool-x", whose entry needs permissions: {write: true}',
      'Requires ffi access to "/x.so": the plan does not grant it to module "tool-x", whose entry needs permissions: {ffi: true}',
      'Requires read access to "/etc": the plan does not grant it to module "tool-x", whose entry needs permissions: {read: ["/etc"]}',
      "Deno.exit is not available to modules",
    ],
  );
});

Deno.test("encodeError() never throws, and returns bounded JSON", () => {
  const odd: unknown[] = [
    ...[undefined, null, 5, "text", Symbol("s"), 5n, () => {}, [], {}],
    new Proxy({}, {
      get: () => {
        throw new Error("no");
      },
      ownKeys: () => {
        throw new Error("no");
      },
    }),
    Object.defineProperty(new Error("x"), "message", {
      get: () => {
        throw new Error("no");
      },
    }),
    Object.defineProperty(new Error("x"), "name", {
      get: () => {
        throw new Error("no");
      },
    }),
    Object.defineProperty(new Error("x"), "cause", {
      get: () => {
        throw new Error("no");
      },
    }),
    Object.assign(new Error("x".repeat(100_000)), { large: "y".repeat(100_000), stack: "z".repeat(100_000) }),
  ];
  const circle = new Error("round");
  circle.cause = circle;
  for (const error of [...odd, circle]) {
    const text = JSON.stringify(encodeError(error));
    assert(text.length < 200_000);
    assert(decodeGuestError(JSON.parse(text), () => undefined) instanceof Error);
  }
});

Deno.test("decodeGuestError() makes an error of anything", () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.dictionary(
        fc.constantFrom("name", "message", "stack", "fields", "cause", "host", "__proto__"),
        fc.jsonValue(),
      ),
      (any, fields) => {
        for (const value of [any, fields, { ...fields, fields }]) {
          const decoded = decodeGuestError(value, () => undefined);
          assert(
            decoded instanceof Error && typeof decoded.message === "string" &&
              typeof decoded.name === "string",
          );
        }
      },
    ),
    propertyOptions(100, 300, 3000),
  );
});

Deno.test("how long a backend asked to wait crosses, though headers are no plain data", () => {
  const busy = Object.assign(new Error("busy"), {
    status: 429,
    headers: new Headers({ "retry-after": "7" }),
  });
  const error = toLLMError(decodeGuestError(across(busy), () => undefined));
  assertEquals([error.type, error.status_code, error.retry_after], ["RateLimitError", 429, 7]);
});
