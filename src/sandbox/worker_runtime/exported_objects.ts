/** Numbers the module's objects that the host may call. */
import { Map } from "../../sdk/primordials.ts";
import type { Shape } from "../protocol.ts";
import { shapeAt } from "./export_shapes.ts";

/** An object that the host may call. */
export interface GuestObject {
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
