/** What the contract suites share: how a case is registered, and how the subject of a case is made and taken down. */
import type { Cleanup, Module } from "../../contracts.ts";
import { isObject, type JsonObject } from "../../json.ts";
import { AssertionError } from "../assertions.ts";
import { TestCoordinator, type TestCoordinatorOptions } from "../coordinator.ts";
import { withinTime } from "../wait_for.ts";

/** Registers one case, as `Deno.test` does. */
export type TestFunction = (name: string, run: () => Promise<void>) => void;

/** Thrown by a case that cannot be tried: nothing is known about the subject then. */
export class NotTriedError extends Error {
  /** The error's name. */
  override readonly name = "NotTriedError";
}

/** Options of every suite. */
export interface SuiteOptions {
  /** The `config` a module is mounted with; default {}. */
  config?: JsonObject;
  /** How the test coordinator is set up. */
  coordinator?: TestCoordinatorOptions;
  /** Registers a case; default `Deno.test`. */
  test?: TestFunction;
  /** Milliseconds of real time that a case may take; default 5,000. */
  deadline_ms?: number;
  /** Called for a case that could not be tried, which then passes; default: a line on the console. */
  not_tried?: (title: string, reason: string) => void;
}

/** What a suite tests: a module, or what a module mounts. */
export type Subject<Part> = Module | Part;

/** Makes a fresh subject; called once per case. */
export type CreateSubject<Part> = () => Subject<Part> | Promise<Subject<Part>>;

/** A subject that is up. */
export interface Mounted {
  /** Where it is mounted. */
  readonly coordinator: TestCoordinator;
  /** What `mount` returned; undefined when the subject is no module. */
  readonly returned: unknown;
  /** What ends it: returned and registered cleanups, in the order they must run. */
  readonly cleanups: readonly Cleanup[];
}

/** How a suite adds a case: by its name and its body. */
export type AddCase = (name: string, run: () => Promise<void>) => void;

/**
 * Returns a function that registers the cases of a suite, each under its deadline.
 *
 * @throws {TypeError} when there is no `Deno.test` and no `test` was given.
 */
export function casesOf(
  name: string,
  { test, deadline_ms = 5000, not_tried = logNotTried }: SuiteOptions,
): AddCase {
  const host = globalThis as { Deno?: { test?: TestFunction } };
  const register = test ?? host.Deno?.test;
  if (!register) {
    throw new TypeError(
      `Cannot register the tests of "${name}": there is no Deno.test: received no option test`,
    );
  }
  return (title, run) =>
    register(`${name}: ${title}`, async () => {
      try {
        await withinTime(run(), deadline_ms, `not done within ${deadline_ms} ms`);
      } catch (error) {
        if (!(error instanceof NotTriedError)) throw error;
        not_tried(title, error.message);
      }
    });
}

function logNotTried(title: string, reason: string): void {
  // deno-lint-ignore no-console -- the output of the test run
  console.info(`not tried: ${title}: ${reason}`);
}

/** Makes the subject and mounts it: a module by its `mount`, anything else at `point`. */
export async function mountSubject(
  create: CreateSubject<object>,
  point: string,
  options: SuiteOptions,
): Promise<Mounted> {
  const subject = await create();
  const coordinator = new TestCoordinator(options.coordinator);
  if (!isModule(subject)) {
    if (point !== "hooks" || isObject(subject)) await coordinator.mount(point, subject);
    return { coordinator, returned: undefined, cleanups: disposeOf(subject) };
  }
  const cleanups: Cleanup[] = [];
  coordinator.registerCleanup = (cleanup) => cleanups.unshift(cleanup);
  const returned: unknown = await subject.mount(coordinator, options.config ?? {});
  if (typeof returned === "function") cleanups.unshift(returned as Cleanup); // §3.3: a function is the cleanup
  else if (isObject(returned)) {
    const empty = coordinator.mount_history.length === 0 &&
      (point !== "hooks" || Object.keys(coordinator.hooks.listHandlers()).length === 0);
    if (empty && isPart(returned, point)) await coordinator.mount(point, returned);
    cleanups.unshift(...disposeOf(returned));
  }
  return { coordinator, returned, cleanups };
}

/** Runs a case's body on a mounted subject and takes the subject down, also when the body fails. */
export async function withSubject(
  create: CreateSubject<object>,
  point: string,
  options: SuiteOptions,
  body: (mounted: Mounted) => Promise<void> | void,
): Promise<void> {
  const mounted = await mountSubject(create, point, options);
  try {
    await body(mounted);
  } finally {
    for (const cleanup of mounted.cleanups) await cleanup();
  }
}

/** Asserts a fact about the subject. */
export function expect(fact: unknown, message: string): asserts fact {
  if (!fact) throw new AssertionError(message);
}

/** Returns true for what only a bug throws: an error of the language, not of the module (behaviour.md §10.2). */
export function isCodeError(error: unknown): boolean {
  const name = isObject(error) ? error.name : undefined;
  return name === "TypeError" || name === "ReferenceError" || name === "SyntaxError";
}

/** Resolves to what the call throws, or undefined when it does not. */
export async function thrownBy(call: () => unknown): Promise<unknown> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return error ?? new Error("threw nothing");
  }
}

function isModule(subject: object): subject is Module {
  return typeof (subject as { mount?: unknown }).mount === "function";
}

const TELLING: Readonly<Record<string, string[]>> = {
  tools: ["execute"],
  providers: ["complete"],
  orchestrator: ["execute"],
  context: ["addMessage", "add_message"],
  hooks: ["handler"],
};

function isPart(value: object, point: string): boolean {
  return (TELLING[point] ?? []).some((method) => typeof (value as JsonObject)[method] === "function");
}

function disposeOf(value: object): Cleanup[] {
  const { cleanup, close, dispose } = value as { cleanup?: unknown; close?: unknown; dispose?: unknown };
  const end = [cleanup, close, dispose].find((one) => typeof one === "function");
  return end ? [() => (end as Cleanup).call(value)] : [];
}
