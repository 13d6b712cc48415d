/** Registers the cases of contract suites, and mounts and unmounts the subject of a case. */
import type { Cleanup, Module, MountReturn } from "../../sdk/contracts.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { methodOf } from "../../sdk/snake_case_aliases.ts";
import { AssertionError } from "../assertions.ts";
import { TestCoordinator, type TestCoordinatorOptions } from "../coordinator.ts";
import { withinTime } from "../clocks.ts";
import { type ConfiguredModule, TestSession, type TestSessionOptions } from "../session.ts";

/** Registers one case, as `Deno.test` does. */
export type TestFunction = (name: string, run: () => Promise<void>) => void;

/** Thrown by a case that cannot be tried, so that it says nothing about the subject. */
export class NotTriedError extends Error {
  /** The error's name. */
  override readonly name = "NotTriedError";
}

/** Options of every suite. */
export interface SuiteOptions {
  /** Config of the module; default {}. */
  config?: JsonObject;
  /** Options of the test coordinator. */
  coordinator?: TestCoordinatorOptions;
  /** Registers a case; default `Deno.test`. */
  test?: TestFunction;
  /** Timeout of a case in milliseconds of real time; default 5,000. */
  deadline_ms?: number;
  /** Called for a case that could not be tried, which then passes; default: logs a line. */
  not_tried?: (title: string, reason: string) => void;
}

/** Subject of a suite: a module, or an object that a module mounts. */
export type Subject<Part> = Module | Part;

/** Creates a new subject; called once per case. */
export type CreateSubject<Part> = () => Subject<Part> | Promise<Subject<Part>>;

/** A mounted subject. */
export interface Mounted {
  /** Coordinator on which the subject is mounted. */
  readonly coordinator: TestCoordinator;
  /** Return value of `mount`; undefined when the subject is not a module. */
  readonly returned: unknown;
  /** Returned and registered cleanups, in the order in which they must run. */
  readonly cleanups: readonly Cleanup[];
}

/** Cases by title; each checks a subject. */
export type Cases<Part> = Readonly<Record<string, (part: Part) => Promise<void> | void>>;

/**
 * Registers the cases of a suite, each with a timeout.
 *
 * @param run Mounts a new subject and passes it to a case.
 * @throws {TypeError} without `Deno.test` and without the option `test`.
 */
export function registerCases<Part>(
  name: string,
  { test, deadline_ms = 5000, not_tried = logNotTried }: SuiteOptions,
  cases: Cases<Part>,
  run: (check: (part: Part) => Promise<void> | void) => Promise<void>,
): void {
  const host = globalThis as { Deno?: { test?: TestFunction } };
  const register = test ?? host.Deno?.test;
  if (!register) {
    throw new TypeError(
      `Cannot register the tests of "${name}": Deno.test does not exist here; pass the option test`,
    );
  }
  for (const [title, check] of Object.entries(cases)) {
    register(`${name}: ${title}`, async () => {
      try {
        await withinTime(run(check), deadline_ms, `not done within ${deadline_ms} ms`);
      } catch (error) {
        if (!(error instanceof NotTriedError)) throw error;
        not_tried(title, error.message);
      }
    });
  }
}

function logNotTried(title: string, reason: string): void {
  // deno-lint-ignore no-console -- the output of the test run
  console.info(`not tried: ${title}: ${reason}`);
}

/** Creates the subject and mounts it: a module by its `mount`, another object at `point`. */
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
  if (typeof returned === "function") cleanups.unshift(returned as Cleanup); // a returned function is the cleanup
  else if (isObject(returned)) {
    const empty = coordinator.mount_history.length === 0 &&
      (point !== "hooks" || Object.keys(coordinator.hooks.listHandlers()).length === 0);
    if (empty && isPart(returned, point)) await coordinator.mount(point, returned);
    cleanups.unshift(...disposeOf(returned));
  }
  return { coordinator, returned, cleanups };
}

/** Runs a case's body on a mounted subject, then runs the cleanups, even when the body fails. */
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

/**
 * Asserts a fact about the subject.
 *
 * @throws {AssertionError} when the fact is false.
 */
export function expect(fact: unknown, message: string): asserts fact {
  if (!fact) throw new AssertionError(message);
}

/** Returns true for errors that only a bug throws: TypeError, ReferenceError and SyntaxError. */
export function isCodeError(error: unknown): boolean {
  const name = isObject(error) ? error.name : undefined;
  return name === "TypeError" || name === "ReferenceError" || name === "SyntaxError";
}

/** Returns functions that call these methods of an object, in whichever spelling it has them. */
export function camelCased(part: object, methods: readonly string[]): object {
  const call = (name: string) => (...args: unknown[]) => {
    const method = methodOf(part, name);
    expect(method, `${name} must be a function`);
    return method(...args);
  };
  return Object.fromEntries(methods.map((name) => [name, call(name)]));
}

/** Resolves to the error of a call, or undefined when it succeeds. */
export async function thrownBy(call: () => unknown): Promise<unknown> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return error ?? new Error("threw nothing");
  }
}

/** Returns a subject as a module that a session requires, with the config of the suite. */
export function required(subject: Subject<object>, { config = {} }: SuiteOptions): ConfiguredModule {
  if (!isModule(subject)) return { mount: () => subject as MountReturn, required: true };
  const { module } = subject;
  const mount: Module["mount"] = (coordinator, given) => subject.mount(coordinator, given);
  return { mount, config, required: true, ...(module === undefined ? {} : { module }) };
}

/** Returns the options of a session that are those of the suite's coordinator. */
export function sessionOptions({ coordinator = {} }: SuiteOptions): TestSessionOptions {
  const { hooks: _own, ...shared } = coordinator;
  return shared;
}

/** Checks an open session, and ends it. @throws {PreampError} when it does not mount a required module. */
export async function inSession(
  options: TestSessionOptions,
  check: (session: TestSession) => Promise<void> | void = () => {},
): Promise<void> {
  const session = new TestSession(options);
  try {
    await session.open();
    await check(session);
  } finally {
    await session.close();
  }
}

function isModule(subject: object): subject is Module {
  return typeof (subject as { mount?: unknown }).mount === "function";
}

const PART_METHODS: Readonly<Record<string, string[]>> = {
  tools: ["execute"],
  providers: ["complete"],
  orchestrator: ["execute"],
  context: ["addMessage", "add_message"],
  hooks: ["handler"],
};

function isPart(value: object, point: string): boolean {
  return (PART_METHODS[point] ?? []).some((method) => typeof (value as JsonObject)[method] === "function");
}

function disposeOf(value: object): Cleanup[] {
  const { cleanup, close, dispose } = value as { cleanup?: unknown; close?: unknown; dispose?: unknown };
  const end = [cleanup, close, dispose].find((item) => typeof item === "function");
  return end ? [() => (end as Cleanup).call(value)] : [];
}
