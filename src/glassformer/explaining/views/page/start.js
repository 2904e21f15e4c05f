// The page of one explanation, which stands in it as JSON.

const explanation = JSON.parse(document.getElementById("explanation").textContent);
const sections = Object.values(draw(explanation)).filter(Boolean);
document.getElementById("page").replaceChildren(...sections);
