/** Reading config: every wrong value is collected, so that one error names them all. */
import { type ErrorDetail, PreampError } from "preamp";

/** Collects what is wrong with a module's config while it is read. */
export class Findings {
  readonly #details: ErrorDetail[] = [];

  /** Notes that the value at `path` does not do; `fact` says what would. */
  add(path: string, fact: string, received: unknown): void {
    this.#details.push({ path, message: `Cannot read ${path}: ${fact}: received ${shown(received)}` });
  }

  /** Returns a text, or undefined when it is absent or wrong. */
  text(path: string, value: unknown): string | undefined {
    if (value === undefined) return undefined;
    if (typeof value === "string") return value;
    this.add(path, "must be a text", value);
  }

  /** Returns a whole number from `minimum`, or undefined when it is absent or wrong. */
  whole(path: string, value: unknown, minimum: number): number | undefined {
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= minimum) return value;
    this.add(path, `must be a whole number from ${minimum}`, value);
  }

  /** Returns a number from `minimum`, or undefined when it is absent or wrong. */
  number(path: string, value: unknown, minimum: number): number | undefined {
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isFinite(value) && value >= minimum) return value;
    this.add(path, `must be a number from ${minimum}`, value);
  }

  /** Returns one of `allowed`, or undefined when it is absent or wrong. */
  oneOf<const T extends string>(path: string, value: unknown, allowed: readonly T[]): T | undefined {
    if (value === undefined) return undefined;
    const found = allowed.find((item) => item === value);
    if (found === undefined) this.add(path, `must be one of ${allowed.join(", ")}`, value);
    return found;
  }

  /** @throws {PreampError} `module_invalid` with all findings in `details`, when there are any. */
  throwIfAny(): void {
    const first = this.#details[0];
    if (first === undefined) return;
    const others = this.#details.length - 1;
    const more = others === 0 ? "" : ` (and ${others} more)`;
    throw new PreampError("module_invalid", `Cannot mount provider-mock: ${first.message}${more}`, {
      details: this.#details,
    });
  }
}

/** Returns how a value is named in an error: short scalars as they are, the rest by kind and size. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value) ?? typeof value;
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`;
}
