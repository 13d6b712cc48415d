/** Buttons that do something in the page. */
import type { ButtonHTMLAttributes } from "preact";

/** A button that submits no form; a plain one looks like text. */
export function Button({ plain, ...rest }: ButtonHTMLAttributes & { plain?: boolean }) {
  return <button type="button" class={plain ? "plain" : undefined} {...rest} />;
}
