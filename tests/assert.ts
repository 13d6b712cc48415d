/**
 * `@std/assert`'s names over `node:assert/strict`, so that tests read the same wherever that package can be
 * had.
 */
import assertStrict from "node:assert/strict";

/** Fails when `value` is not truthy. */
export function assert(value: unknown, message?: string): asserts value {
  assertStrict.ok(value, message);
}

/** Fails when the two are not equal all the way down, prototypes included. */
export function assertEquals<T>(actual: T, expected: T, message?: string): void {
  assertStrict.deepStrictEqual(actual, expected, message);
}

/** Fails when the two are equal all the way down. */
export function assertNotEquals<T>(actual: T, expected: T, message?: string): void {
  assertStrict.notDeepStrictEqual(actual, expected, message);
}

/** Fails when the two are not the same value. */
export function assertStrictEquals<T>(actual: unknown, expected: T, message?: string): asserts actual is T {
  assertStrict.strictEqual(actual, expected, message);
}

/** Fails when `text` does not match. */
export function assertMatch(text: string, pattern: RegExp, message?: string): void {
  assertStrict.match(text, pattern, message);
}

/** Fails when `text` does not contain `part`. */
export function assertStringIncludes(text: string, part: string, message?: string): void {
  assertStrict.ok(
    text.includes(part),
    message ?? `Expected ${JSON.stringify(text)} to include ${JSON.stringify(part)}`,
  );
}

/**
 * Fails when `run` returns; else returns what it threw, of class `kind` and with `text` in its message where
 * these are given.
 */
export function assertThrows(run: () => unknown, kind?: ErrorClass, text?: string): Error {
  try {
    run();
  } catch (error) {
    return checked(error, kind, text);
  }
  throw new assertStrict.AssertionError({ message: "Expected the function to throw" });
}

/** Fails when `run` resolves; else resolves to what it threw, as {@link assertThrows}. */
export async function assertRejects(
  run: () => unknown,
  kind?: ErrorClass,
  text?: string,
): Promise<Error> {
  try {
    await run();
  } catch (error) {
    return checked(error, kind, text);
  }
  throw new assertStrict.AssertionError({ message: "Expected the function to reject" });
}

type ErrorClass = abstract new (...args: never[]) => Error;

function checked(error: unknown, kind: ErrorClass = Error, text?: string): Error {
  assertStrict.ok(error instanceof kind, `Expected ${kind.name}: received ${error}`);
  if (text !== undefined) assertStringIncludes(error.message, text);
  return error;
}
