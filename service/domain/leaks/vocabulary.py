"""Words that say little about what a shopper wants: the frozen word table of the near-equal rule, in two classes.

Data, not behaviour. Written by hand from ordinary English and the vocabulary of web shops, measured as
docs/decisions/0003-near-equal-queries.md says. A change here is a new version of the leak plan.
"""

_FUNCTION = """
a about above all also am an and another any around as at be been being below between both but by can could did do
does each either every for from had has have having he her here his how i if in into is it its just least less like
m may me might mine more most must my next no nor not of off on one ones onto only or other our out over per plus
please re s shall she should so some such t than that the their them there these they this those to too under up us
use used using ve very was we well were what when where which who whom whose why will with within without would you
your d ll first second third fourth last lastly finally following same thing things
available brand branded brands budget buy category come comes coming compatible cost costing costs design designed
feature featuring features find get give help include includes including item items kind look looking made make
making maximum minimum model need needed needs offer offering offers option options peso pesos php price priced
prices pricing product products purchase range search sell seller sellers selling sells series shop shops show sold
store stores style styles suitable support supports type types version want wanted wants
"""
FUNCTION_WORDS = frozenset(_FUNCTION.split())
"""Grammar, and the frame of every request ("looking for ... priced above ... pesos")."""

_COMMON = """
baby beige big black blue boys brown clear color colored colour coloured dark extra family girls gold gray green
grey khaki kid kids large light long man medium men mens mini multicolor navy orange pink plain purple red regular
short silver size sized sizes small solid transparent unisex white woman women womens xl xs xxl yellow
adult canvas casual cotton denim fabric fashion fit full glass high leather low material materials metal new number
nylon paper pattern plastic polyester power quality rubber shape shaped silicone stainless steel wood wooden
bag bottle box car cm g gram grams inch inches kg l liter liters meter meters ml mm pack packs pair pcs phone piece
pieces set sets single water
authentic authenticity cash cod deal deals delivery easy eligible express fast flash free genuine guaranteed
lazflash lazmall local month months official original pay payment quick return returns sale shipping supplier
warranty year years
award born city company country game name person received school surname team university
"""
COMMON_WORDS = frozenset(_COMMON.split())
"""Colours, sizes, materials, units, delivery terms and the nouns of quiz questions: shared by many different wants."""
