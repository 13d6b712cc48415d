/** Checks the options of `createPreamp`: a value of the wrong kind would be ignored, or fail at a request. */
import { defaultPolicy } from "../policy/settings.ts";
import { Redactor } from "../policy/redact.ts";
import { isObject } from "../sdk/json.ts";
import { describeKind } from "../sdk/value_path.ts";

/** What an option must be, and whether a value is that. */
type Check = readonly [expected: string, accepts: (value: unknown) => boolean];

const isFunction = (value: unknown) => typeof value === "function";
const isText = (value: unknown) => typeof value === "string";
const isMilliseconds = (value: unknown) => typeof value === "number" && value > 0;

/** Returns whether a value has all settings of a policy, such as each limit. */
const isPolicy = (value: unknown) => hasFieldsOf(defaultPolicy(), value);
const hasFieldsOf = (all: unknown, value: unknown): boolean =>
  isObject(all)
    ? isObject(value) && Object.entries(all).every(([key, field]) => hasFieldsOf(field, value[key]))
    : typeof all === typeof value || all === undefined;
const isStore = (value: unknown) => isObject(value) && isFunction(value.ready) && isFunction(value.close);
const isFolder = (value: unknown) => value instanceof URL && value.pathname.endsWith("/");

const CHECKS: Readonly<Record<string, Check>> = {
  policy: ["a policy, such as policyFromData({ limits: {} })", isPolicy],
  store: ["a store, such as openStore() returns", isStore],
  plans: [
    "a URL that ends in a slash",
    (value) => isFolder(value) || isObject(value) && isFunction(value.find),
  ],
  workspace: ["a URL that ends in a slash", isFolder],
  home: ["a URL that ends in a slash", isFolder],
  modules: ["an object with a module for each id", isObject],
  authenticate: ["a function or null", isFunction],
  hosts: [
    'a list of host names or "any"',
    (value) => value === "any" || Array.isArray(value) && value.every(isText),
  ],
  basePath: ["text", isText],
  page: ["true or false", (value) => typeof value === "boolean"],
  heartbeat_ms: ["a number of milliseconds above 0", isMilliseconds],
  log: ["a function or null", isFunction],
  runtime_log: ["a function or null", isFunction],
  secrets: [
    "a list of texts",
    (value) => value instanceof Redactor || Array.isArray(value) && value.every(isText),
  ],
};

/** @throws {TypeError} for an option of another kind than it must be. Null is as an absent option. */
export function checkOptions(options: object): void {
  for (const [name, [expected, accepts]] of Object.entries(CHECKS)) {
    const value: unknown = Reflect.get(options, name);
    if (value === undefined || value === null || accepts(value)) continue;
    throw new TypeError(`Cannot create Preamp: ${name} must be ${expected}: received ${describeKind(value)}`);
  }
}
