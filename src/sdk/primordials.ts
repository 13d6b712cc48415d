/**
 * Copies of the language's built-ins, taken when this file is loaded. A module may replace a built-in of its
 * isolate, as polyfills do. The code that serves a module in its sandbox, and the SDK functions that this
 * code needs, import these copies. Names are those of the language; methods of lists and texts take their
 * receiver first.
 */

const { apply } = globalThis.Reflect;

type Method<This, Args extends unknown[], Result> = (this: This, ...args: Args) => Result;

/** Returns a method as a function that takes its receiver first. */
function uncurried<This, Args extends unknown[], Result>(
  method: Method<This, Args, Result>,
): (self: This, ...args: Args) => Result {
  return (self, ...args) => apply(method, self, args);
}

/** Returns a frozen object with the same members. */
function copyOf<T extends object>(namespace: T): T {
  const descriptors = globalThis.Object.getOwnPropertyDescriptors(namespace);
  return globalThis.Object.freeze(globalThis.Object.create(null, descriptors)) as T;
}

/** Copies the methods of a built-in to the class that extends it, and freezes them. */
function own(derived: { prototype: object }, base: { prototype: object }): void {
  const { constructor: _, ...methods } = globalThis.Object.getOwnPropertyDescriptors(base.prototype) as
    & PropertyDescriptorMap
    & { constructor?: PropertyDescriptor };
  globalThis.Object.defineProperties(derived.prototype, methods);
  globalThis.Object.freeze(derived.prototype);
}

const { Object: Objects, JSON: Json, Reflect: Reflection } = globalThis;

/** `JSON`; {@link toText} writes texts. */
export const JSON: typeof globalThis.JSON = copyOf(Json);
/** The functions of `Object`. */
export const Object: typeof globalThis.Object = copyOf(Objects);
/** The functions of `Reflect`. */
export const Reflect: typeof globalThis.Reflect = copyOf(Reflection);
/** `Array.isArray`. */
export const isArray: typeof Array.isArray = Array.isArray;
/** The class `Proxy`. */
export const Proxy: typeof globalThis.Proxy = globalThis.Proxy;
/** The class `AbortController`. */
export const AbortController: typeof globalThis.AbortController = globalThis.AbortController;

/** `Map`. */
export class Map<K, V> extends globalThis.Map<K, V> {}
own(Map, globalThis.Map);

/** `Set`. */
export class Set<T> extends globalThis.Set<T> {}
own(Set, globalThis.Set);

/** `WeakMap`. */
export class WeakMap<K extends WeakKey, V> extends globalThis.WeakMap<K, V> {}
own(WeakMap, globalThis.WeakMap);

const arrays = Array.prototype;
const texts = String.prototype;
const BuiltInPromise = Promise;
const { withResolvers: promiseWithResolvers } = Promise;

/** `list.push(item)`. */
export const push: <T>(list: T[], item: T) => number = uncurried(arrays.push) as never;
/** `list.slice(start)`. */
export const slice: <T>(list: readonly T[], start: number) => T[] = uncurried(arrays.slice) as never;
/** `list.map(change)`. */
export const map: <T, R>(list: readonly T[], change: (item: T) => R) => R[] = uncurried(arrays.map) as never;
/** `list.join(separator)`. */
export const join: (list: readonly string[], separator: string) => string = uncurried(arrays.join) as never;
/** `text.slice(start, end)`. */
export const cut: (text: string, start: number, end: number) => string = uncurried(texts.slice) as never;
/** `text.indexOf(part, start)`. */
export const find: (text: string, part: string, start: number) => number = uncurried(texts.indexOf) as never;
/** `fn.bind(self)`. */
export const bind: <F>(fn: F, self: unknown) => F = uncurried(Function.prototype.bind) as never;

/** `Promise.withResolvers()`. */
export function withResolvers<T>(): PromiseWithResolvers<T> {
  return apply(promiseWithResolvers, BuiltInPromise, []) as PromiseWithResolvers<T>;
}

/** Prototypes on which a module could define a `toJSON` that changes the output of {@link toText}. */
const PATCHABLE: readonly object[] = [Objects.prototype, arrays];

/** Returns the JSON text of plain data; ignores a `toJSON` that a module added to all objects or lists. */
export function toText(plain: unknown): string {
  const hidden: [object, PropertyDescriptor][] = [];
  for (let index = 0; index < PATCHABLE.length; index++) {
    const prototype = PATCHABLE[index]!;
    const found = Object.getOwnPropertyDescriptor(prototype, "toJSON");
    if (found?.configurable) {
      hidden[hidden.length] = [prototype, found];
      Reflect.deleteProperty(prototype, "toJSON");
    }
  }
  try {
    return JSON.stringify(plain);
  } finally {
    for (let index = 0; index < hidden.length; index++) {
      Object.defineProperty(hidden[index]![0], "toJSON", hidden[index]![1]);
    }
  }
}
