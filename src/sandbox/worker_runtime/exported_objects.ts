/**
 * The module's objects that the host may call: their numbers, and their shapes, which are a copy of their
 * data and the names of their methods.
 */
import { errorMessage } from "../../sdk/errors.ts";
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import { Map, Object, push, Reflect, Set } from "../../sdk/primordials.ts";
import { methodOf, unboundMethodOf } from "../../sdk/snake_case_aliases.ts";
import { FIELDS, type Shape } from "../protocol.ts";

/** An object that the host may call. */
interface GuestObject {
  /** Mount point; `""` for a function or any other object. */
  readonly point: string;
  readonly object: object;
}

/** Objects of one module. */
export class GuestObjects {
  readonly #entries = new Map<number, GuestObject>();
  #next = 1;

  /** Adds an object and returns its ref. */
  add(object: object, point = ""): number {
    const ref = this.#next++;
    this.#entries.set(ref, { point, object });
    return ref;
  }

  delete(ref: number): void {
    this.#entries.delete(ref);
  }

  /** Returns the object of a ref. @throws {Error} if it does not exist. */
  get(ref: number): GuestObject {
    const entry = this.#entries.get(ref);
    if (!entry) throw new Error(`Cannot call object ${ref}: the module has none`);
    return entry;
  }

  /** Returns the current shapes of mounted tools and providers, by ref. */
  shapes(): Record<string, Shape> {
    const shapes: Record<string, Shape> = {};
    this.#entries.forEach(({ point, object }, ref) => {
      if (point === "tools" || point === "providers") shapes[ref] = shapeAt(point, object);
    });
    return shapes;
  }
}

/** Most methods of one shape. */
const MAX_METHODS = 64;

/** Returns the shape of an object at a mount point. */
export function shapeAt(point: string, object: object): Shape {
  const known = FIELDS[point];
  if (!known) return shapeOf(object);
  const data: JsonObject = {};
  for (let at = 0; at < known.data.length; at++) {
    const field = known.data[at]!;
    const value = Reflect.get(object, field);
    if (value !== undefined && typeof value !== "function") data[field] = toPlain(value);
  }
  if (point === "tools") addSchema(data, object);
  if (point === "providers") addInfo(data, object);
  return { data, methods: methodsOf(object, known.methods) };
}

/** Adds a tool's schema. An invalid one is sent as it is: the mount reports it. */
function addSchema(data: JsonObject, tool: object): void {
  const { input_schema, inputSchema } = tool as { input_schema?: unknown; inputSchema?: unknown };
  const schema = input_schema ?? inputSchema ?? methodOf(tool, "getSchema")?.();
  if (schema !== undefined) data.input_schema = toPlain(schema);
}

function addInfo(data: JsonObject, provider: object): void {
  const { config } = provider as { config?: unknown };
  if (data.priority === undefined && isObject(config) && typeof config.priority === "number") {
    data.priority = config.priority;
  }
  addAnswer(data, provider, "info", "getInfo");
  addAnswer(data, provider, "model_info", "getModelInfo");
}

function addAnswer(data: JsonObject, provider: object, field: string, name: string): void {
  const method = methodOf(provider, name);
  if (!method) return;
  try {
    data[field] = toPlain(method());
  } catch (error) {
    data[`${field}_error`] = errorMessage(error);
  }
}

/** Returns the shape of any object: its own data, its methods and those of its class. */
export function shapeOf(object: object): Shape {
  const names = new Set<string>();
  for (
    let level: object | null = object;
    level !== null && level !== Object.prototype && level !== Function.prototype;
    level = Object.getPrototypeOf(level)
  ) {
    const own = Object.getOwnPropertyNames(level);
    for (let at = 0; at < own.length; at++) if (own[at] !== "constructor") names.add(own[at]!);
  }
  const methods: string[] = [];
  names.forEach((name) => {
    if (methods.length < MAX_METHODS && hasMethod(object, name)) push(methods, name);
  });
  const data = toPlain({ ...object });
  return { data: isObject(data) ? data : {}, methods };
}

/** Returns those of the names under which an object has a method, in camelCase or snake_case. */
function methodsOf(object: object, names: readonly string[]): string[] {
  const found: string[] = [];
  for (let at = 0; at < names.length; at++) if (hasMethod(object, names[at]!)) push(found, names[at]!);
  return found;
}

function hasMethod(object: object, name: string): boolean {
  try {
    return unboundMethodOf(object, name) !== undefined;
  } catch {
    return false; // the getter throws
  }
}
