/** Checks values of a config and collects all problems, so that one error reports them. */
import { type ErrorDetail, PreampError } from "preamp";

/** Collects the problems of a config. */
export class Findings {
  readonly #details: ErrorDetail[] = [];

  /** Adds a problem: the value at `path` does not satisfy `rule`. */
  add(path: string, rule: string, received: unknown): void {
    this.#details.push({ path, message: `Cannot read ${path}: ${rule}: received ${describe(received)}` });
  }

  /** Returns a text; undefined when it is absent or wrong. */
  text(path: string, value: unknown): string | undefined {
    if (value === undefined) return undefined;
    if (typeof value === "string") return value;
    this.add(path, "must be a text", value);
  }

  /** Returns a whole number of at least `minimum`; undefined when it is absent or wrong. */
  whole(path: string, value: unknown, minimum: number): number | undefined {
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= minimum) return value;
    this.add(path, `must be a whole number from ${minimum}`, value);
  }

  /** Returns a number of at least `minimum`; undefined when it is absent or wrong. */
  number(path: string, value: unknown, minimum: number): number | undefined {
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isFinite(value) && value >= minimum) return value;
    this.add(path, `must be a number from ${minimum}`, value);
  }

  /** Returns one of `allowed`; undefined when it is absent or wrong. */
  oneOf<const T extends string>(path: string, value: unknown, allowed: readonly T[]): T | undefined {
    if (value === undefined) return undefined;
    const found = allowed.find((item) => item === value);
    if (found === undefined) this.add(path, `must be one of ${allowed.join(", ")}`, value);
    return found;
  }

  /** @throws {PreampError} `module_invalid` with all problems in `details`, if there are any. */
  throwIfAny(): void {
    const first = this.#details[0];
    if (first === undefined) return;
    const rest = this.#details.length - 1;
    const more = rest === 0 ? "" : ` (and ${rest} more)`;
    throw new PreampError("module_invalid", `Cannot mount provider-mock: ${first.message}${more}`, {
      details: this.#details,
    });
  }
}

/** Returns a value for an error message: scalars truncated to 40 characters, others by kind and size. */
function describe(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value) ?? typeof value;
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`;
}
